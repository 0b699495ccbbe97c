"""What a trace holds: the rows, and the manifest of a run.

One schema serves real and simulated runs. A row describes a batch (messages `first` to `first + count - 1`
of one sender and level), so that tracing costs the same for one message as for a thousand; the pipeline
explodes it. Rows of one member carry `step`, the order in which things happened there: no check needs
the clocks of two members to agree.

| event | when | position |
|---|---|---|
| broadcast | the application handed the messages over; `packet` names the request of a client, if it was on
              behalf of one | -1 |
| sent      | the protocol gave a packet with them to the links (`peer` is empty: to all) | of the packet |
| received  | a packet with them came from `peer` (from itself, too) | of the packet |
| delivered | the application consumed them | of the first message |
| view      | the application was told of the view: `peer` lists its members, `sender` is who orders in it
              (empty: nobody alone), `packet` is the reason, `order` how it is ordered (a `ViewOrder`) | of
              the next message, at least |
| stopped   | the member is out of the group, `packet` is the reason | -1 |
| state     | the member took over the group's state as it was before this position | of the next message |

A view is named by its number and its coordinator. `safe` and `to` (names of members, with commas) are what
the sender asked for: delivery only when every member holds the message, and to these members only. A packet
carries messages or only names them: where it names them, `bytes` is 0, and what goes with a message
(`priorities`, `safe`, `to`) is not said.
"""

from typing import NamedTuple

import msgspec

from priocast.core.errors import InvalidOption, UnreadableTrace
from priocast.core.starvation import FirstInFirstOut, Starvation, parse_starvation

SCHEMA_VERSION = 3
FORMAT = "priocast-run"
NO_POSITION = -1

BROADCAST = "broadcast"
SENT = "sent"
RECEIVED = "received"
DELIVERED = "delivered"
VIEW = "view"
STOPPED = "stopped"
STATE = "state"


class Row(NamedTuple):
    """One thing that happened to one batch at one member."""

    member: str
    incarnation: int
    view: int
    coordinator: str
    step: int
    time_ns: int
    event: str
    packet: str
    peer: str
    sender: str
    sender_incarnation: int
    level: int
    first: int
    count: int  # type: ignore[assignment]  # a column, not tuple.count
    priorities: bytes
    safe: bool
    to: str
    position: int
    bytes: int
    backlog: int
    order: str


class ViewOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How a view is ordered: what a reader must know who judges the queues of its members.

    `order` is the protocol. `policy` is the starvation policy in force, `fifo` in a plain view.
    `priorities_act` says where the protocol lets priorities act: *sequencing* (in the queues of those who
    give out places), *sending*, *delivering*, *consensus* or *consuming* (in the queues of what waits for the
    applications); `sends_by_priority` whether also what a member has broadcast leaves it by priority.
    """

    order: str
    policy: str
    priorities_act: str
    sends_by_priority: bool

    @property
    def starvation(self) -> Starvation:
        """The policy in force."""
        return FirstInFirstOut() if self.policy == str(FirstInFirstOut()) else parse_starvation(self.policy)

    @property
    def is_plain(self) -> bool:
        """Whether nothing overtakes in this view."""
        return isinstance(self.starvation, FirstInFirstOut)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def read_view_order(text: str) -> ViewOrder:
    """How a view is ordered, as its row says it."""
    try:
        found = msgspec.json.decode(text, type=ViewOrder)
        assert found.starvation is not None
        return found
    except (msgspec.MsgspecError, InvalidOption) as error:
        raise UnreadableTrace(f"a view is said to be ordered by {text!r}: {error}") from error


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """What a run was: enough to read its trace and, for a simulated one, to repeat it.

    `order`, `prioritised` and `starvation` are those that it begins with; each view says how it is ordered.
    `orders` says who decides the order in a view: the `coordinator`, or nobody alone (empty);
    `priorities_act`, where. `members` are those that found the group. `policy` is `primary` or
    `partitionable`, `delivery` is `agreed` or `safe`. `clock` says whose times can be compared: `virtual` and
    `shared` ones between members, `local` ones only within a member.
    """

    run: str
    group: str
    order: str
    prioritised: bool
    starvation: str
    orders: str
    priorities_act: str
    members: list[str]
    policy: str
    delivery: str
    clock: str
    options: dict[str, int | float | str | bool | None] = {}
    labels: dict[str, str] = {}
    seed: int | None = None
    versions: dict[str, str] = {}
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION
