"""The schema of a trace: three tables of rows, and the manifest of a run (`docs/trace.md` has every column).

Real and simulated runs have the same schema. A row of the table `messages` describes a batch (messages
`first` to `first + count - 1` of one sender and level), so that recording costs the same for one message as
for a thousand. A row of the table `group_events` describes what a member learned about its group, one of the
table `services` a message that is sent with a quality of service. The rows of one process, in all tables
together, are numbered by `step`, the order in which things happened there. Only tightness (Px7), which is
about time, compares the clocks of two members.
"""

from typing import NamedTuple

import msgspec

from priocast.core.errors import InvalidOption, UnreadableTrace
from priocast.core.starvation import FirstInFirstOut, Starvation, parse_starvation
from priocast.core.view_reason import Eviction, ViewReason

SCHEMA_VERSION = 6
FORMAT = "priocast-run"
NO_POSITION = -1

BROADCAST = "broadcast"
SENT = "sent"
RECEIVED = "received"
DELIVERED = "delivered"
FINISHED = "finished"

LATE = "late"
"""The reason of a delivery that was outside of its window."""

VIEW = "view"
STATE = "state"
STOPPED = "stopped"

#: A run with this label is measured by sender: when its load is settled and when it ends, in seconds after
#: the first message, separated by a colon.
SETTLED_LABEL = "settled_s"


class ViewName(NamedTuple):
    """The identity of a view as the rows contain it: its number and its coordinator."""

    number: int
    coordinator: str

    def __str__(self) -> str:
        return f"{self.number}@{self.coordinator}"


class MessageRow(NamedTuple):
    """One event of one batch at one member.

    `broadcast`: the application submitted the batch. `sent`: the protocol passed a packet with it to the
    links (`peer` is empty if it went to all). `received`: a packet with it arrived from `peer`, which may be
    the member itself. `delivered`: the application consumed it.

    A packet carries a batch or only references it. If it references it, `bytes` is 0, and the columns that
    belong to the messages themselves (`priorities`, `safe`, `to`, `client`, `request`) are empty.

    `distribution` and `stamp_number` are the stamp of the first message that is delivered, where the order of
    the view has stamps; the view is the third part of it.
    """

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
    client: str
    request: int
    position: int
    bytes: int
    backlog: int
    distribution: str = ""
    stamp_number: int = NO_POSITION


class GroupEventRow(NamedTuple):
    """One event of the group at one member; the columns that do not belong to the event are empty.

    `view`: the application received the view, with its `members`, the member that orders alone (`orderer`,
    empty if there is none), the next position, how the view is ordered, and why it was installed. `state`:
    the application received the group's state as of `position`. `stopped`: the member is no longer in the
    group, because it left (`voluntary`) or was excluded; the reason is that of the view without it.
    """

    member: str
    incarnation: int
    view: int
    coordinator: str
    step: int
    time_ns: int
    event: str
    position: int = NO_POSITION
    members: tuple[str, ...] = ()
    orderer: str = ""
    order: str = ""
    starvation: str = ""
    priorities_act: str = ""
    sends_by_priority: bool = False
    founded: bool = False
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    evicted: tuple[tuple[str, str, str], ...] = ()
    merged: tuple[str, ...] = ()
    order_change: str = ""
    voluntary: bool = False
    state_bytes: int = 0

    @property
    def reason(self) -> ViewReason:
        """Why the view was installed, or an error if the trace contains an unknown cause of an eviction."""
        try:
            evicted = tuple(msgspec.convert(eviction, Eviction) for eviction in self.evicted)
        except msgspec.ValidationError as error:
            raise UnreadableTrace(
                f"view {self.view}@{self.coordinator} has an unknown eviction: {error}"
            ) from error
        return ViewReason(
            self.founded, self.joined, self.left, self.failed, evicted, self.merged, self.order_change
        )

    @property
    def view_order(self) -> "ViewOrder":
        """How the view is ordered, or an error if the trace does not contain a valid starvation policy."""
        found = ViewOrder(
            order=self.order,
            policy=self.starvation,
            priorities_act=self.priorities_act,
            sends_by_priority=self.sends_by_priority,
        )
        try:
            assert found.starvation is not None
        except InvalidOption as error:
            raise UnreadableTrace(
                f"view {self.view}@{self.coordinator} has an unknown starvation policy: {error}"
            ) from error
        return found


class ServiceRow(NamedTuple):
    """One event of one message that has a quality of service.

    `sent`: the application sent the message, of `units` units, to `recipients`. `delivered`: the application
    consumed one `unit` of it; `late` is among the `reasons` if that was outside of its window. `finished`:
    its transmission has ended, and the columns from `accepted` on are those of the receipt; they are empty
    otherwise. A message is the `number`-th of its sender in a `stream`.
    """

    member: str
    incarnation: int
    view: int
    coordinator: str
    step: int
    time_ns: int
    event: str
    sender: str
    sender_incarnation: int
    stream: str
    number: int
    unit: int = 0
    units: int = 0
    bytes: int = 0
    quality: str = ""
    priority: int = 0
    recipients: tuple[str, ...] = ()
    accepted: bool = False
    answered: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    rounds: int = 0


TraceRow = MessageRow | GroupEventRow | ServiceRow


class ViewOrder(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """How a view is ordered: what a reader must know to judge the queues of its members.

    `order` is the protocol. `policy` is the starvation policy in force, `fifo` in a plain view.
    `priorities_act` says where priorities act in the protocol: *sequencing* (in the queue of the orderer),
    *sending*, *delivering*, *consensus*, or *consuming* (in the queues of messages that wait for the
    applications). `sends_by_priority` says whether a member also sends its own messages by priority.
    """

    order: str
    policy: str
    priorities_act: str
    sends_by_priority: bool

    @property
    def starvation(self) -> Starvation:
        """The starvation policy in force."""
        return FirstInFirstOut() if self.policy == str(FirstInFirstOut()) else parse_starvation(self.policy)

    @property
    def is_plain(self) -> bool:
        """Whether no message overtakes another in this view."""
        return isinstance(self.starvation, FirstInFirstOut)

    def __str__(self) -> str:
        return f"{self.order}, {'plain' if self.policy == str(FirstInFirstOut()) else self.policy}"


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """The description of a run: enough to read its trace and, for a simulated run, to repeat it.

    `order`, `prioritised` and `starvation` are the initial ones; each view in the trace has its own. `orders`
    names who decides the order in a view: the `coordinator`, or no single member (empty). `priorities_act`
    says where. `members` are the founders. `policy` is `primary` or `partitionable`, `delivery` is `agreed`
    or `safe`. `clock` says which times can be compared: `virtual` and `shared` ones between members, `local`
    ones only within a member.
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
