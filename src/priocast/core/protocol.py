"""The inputs, outputs and options of an ordering protocol: a deterministic state machine.

A protocol has one way in, `step(input, now)`, and one way out, the list of outputs that `step` returns. It
has no clock, no socket and no random numbers, so the asyncio runtime and the simulator drive the same object.

    inputs    Broadcast   the application broadcasts a batch
              Received    a packet arrived from a member (its own packets, too)
              Turn        all inputs that were ready have been passed in: act on them
              Consume     the application consumed messages from the head of the queue
              LinkBlocked, LinkCleared    a link to a member is full, has room again
              TimerFired  a timer that was set is due
    outputs   Send        a packet for one member; packets to oneself come back like any other
              SendAll     a packet for every member of the view, including oneself
              SendEach    the same, for a packet that decides nothing about the order
              SetTimer, CancelTimer
              MoreToDo    the turn was cut short; give another one when the links have taken this one

Acting in turns is how batches form: by what is ready, never by waiting. `inspect(now)` is the one value that
status and observers see.
"""

from typing import ClassVar, Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference
from priocast.core.options import check_durations, check_types
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict

PrioritiesAct = Literal["sequencing", "sending", "delivering", "consensus", "consuming"]


class Packet(msgspec.Struct, frozen=True, array_like=True):
    """The base of all packets that protocols send; a subclass has a tag and is its own wire format.

    A packet that carries messages has them in `batches`, one that refers to them has `references`; one that
    assigns positions has that of the first message in `position`. A packet that decides about the order must
    be `TO_ALL`: only such packets are kept until they are stable, and always go to all members.
    """

    TO_ALL: ClassVar[bool] = False

    @property
    def messages(self) -> tuple[Batch | Reference, ...]:
        """The messages that the packet carries or refers to."""
        found: tuple[Batch | Reference, ...] = getattr(self, "batches", ()) or getattr(self, "references", ())
        return found

    @classmethod
    def name(cls) -> str:
        """The name of the packet on the wire and in traces."""
        tag = cls.__struct_config__.tag
        assert isinstance(tag, str)
        return tag


class Broadcast(msgspec.Struct, frozen=True, gc=False):
    batch: Batch


PacketId = tuple[int, int]
"""The id of a packet that was sent to all: its sender's rank, and its number among the sender's, from 1."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A packet, and its id if it was sent to all (otherwise the number is 0)."""

    sender: ProcessId
    packet: Packet
    packet_id: PacketId = (0, 0)


class Turn(msgspec.Struct, frozen=True, gc=False):
    pass


class Consume(msgspec.Struct, frozen=True, gc=False):
    count: int


class LinkBlocked(msgspec.Struct, frozen=True, gc=False):
    peer: ProcessId


class LinkCleared(msgspec.Struct, frozen=True, gc=False):
    peer: ProcessId


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    name: str


Input = Broadcast | Received | Turn | Consume | LinkBlocked | LinkCleared | TimerFired


class Send(msgspec.Struct, frozen=True, gc=False):
    to: ProcessId
    packet: Packet


class SendAll(msgspec.Struct, frozen=True, gc=False):
    packet: Packet


class SendEach(msgspec.Struct, frozen=True, gc=False):
    packet: Packet


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    name: str
    at: int


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    name: str


class MoreToDo(msgspec.Struct, frozen=True, gc=False):
    pass


Output = Send | SendAll | SendEach | SetTimer | CancelTimer | MoreToDo


WINDOW_MAX = 65_536
ADAPTATION_LENGTH_MAX = 1_000
_BOUNDS = ("queue_max", "queue_bytes_max", "submit_max", "submit_bytes_max")


class OrderingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an ordering protocol.

    `window`: how many messages may be ordered but not yet consumed by the slowest member. The smaller it is,
    the more of the backlog waits where priorities act; the larger, the more of a round trip it hides. None:
    each member grants as many as keep its application busy, at most what it consumes in `window_ms`. `burst`:
    how many messages a member of `token-ring` sends while it has the token; None: all that there is room for.
    `bucket`: how many timestamps `causal-history` and `all-ack` deliver together, by priority.
    `acknowledge_ms`: how long a member of `all-ack` that has nothing to send lets the others wait. `part_ms`
    and `part_count`: when a part ends in the layers of the same names. `distributed`: the members of
    `reorder` answer to all instead of to the sender. `overtakes_max`: how many more urgent messages a member
    of `reorder` sends while a message waits in its queue; None: any number. `adaptation`: the policy by which
    `adaptive` gives slots to its members, with its argument after a colon, as in `sliding-window:8`.
    `queue_*` bound what a member's application has broadcast and the protocol has not sent, `submit_*` what
    one member has sent that has no position yet.
    """

    prioritised: bool = True
    starvation: Starvation = Strict()
    window: int | None = None
    window_ms: float = 20.0
    window_bytes: int = 16 * 1024 * 1024
    burst: int | None = None
    bucket: int = 1
    acknowledge_ms: float = 50.0
    part_ms: float = 10.0
    part_count: int = 32
    distributed: bool = False
    overtakes_max: int | None = None
    adaptation: str = "sliding-window"
    queue_max: int = 8192
    queue_bytes_max: int = 32 * 1024 * 1024
    submit_max: int = 8192
    submit_bytes_max: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        check_types(self)
        check_durations(self, "window_ms", "acknowledge_ms", "part_ms")
        if self.window is not None and not 1 <= self.window <= WINDOW_MAX:
            raise InvalidOption(
                f"window is {self.window}: it must be between 1 and {WINDOW_MAX} messages, or omitted"
            )
        for name in ("burst", "overtakes_max"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidOption(f"{name} is {value}: it must be at least 1, or omitted")
        if len(self.adaptation) > ADAPTATION_LENGTH_MAX:
            raise InvalidOption(f"adaptation is longer than {ADAPTATION_LENGTH_MAX} characters")
        if not 1 <= self.bucket <= WINDOW_MAX:
            raise InvalidOption(f"bucket is {self.bucket}: it must be between 1 and {WINDOW_MAX} timestamps")
        for name in ("window_bytes", "part_count", *_BOUNDS):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name} is {getattr(self, name)}: it must be at least 1")

    @property
    def policy(self) -> Starvation:
        """The starvation policy of the queues; a plain group is first in, first out."""
        return self.starvation if self.prioritised else FirstInFirstOut()
