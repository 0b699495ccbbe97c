"""The interface of an ordering protocol: a deterministic state machine.

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

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, OrderedBatch, Reference
from priocast.core.options import check_durations, check_types
from priocast.core.priority_queue import PriorityQueue
from priocast.core.stall import StallMeter
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict
from priocast.core.view import View

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


class Protocol(ABC):
    """The base of every ordering protocol; a subclass reads like the paper's figure.

    It owns two queues: `outgoing`, what the application broadcast and the protocol has not sent yet, and the
    ordered batches that wait for the application. It exists for one view, whose first message has `position`.
    When the view ends, it returns what is left in both: all messages that have a position, and its own
    messages that have none, which the next view's protocol sends again.

    Positions must follow from packets to all, and from nothing else: all members that continue together have
    the same ones. `depends_on` records the packets that a position depends on. A protocol in which a member
    may also learn positions by other means is not `PARTITIONABLE`. A protocol in which a starvation policy
    would not bound how far a message is overtaken does not take one (`TAKES_STARVATION_POLICY`).

    `position_next` is the position of the next message, `has_safe` says that safe messages were ordered.
    `stalls` measures how long the application had to wait for the head of its queue.
    """

    NAME: ClassVar[str]
    PACKETS: ClassVar[tuple[type[Packet], ...]]
    PRIORITIES_ACT: ClassVar[PrioritiesAct]
    SENDS_BY_PRIORITY: ClassVar[bool] = True
    PARTITIONABLE: ClassVar[bool] = True
    TAKES_STARVATION_POLICY: ClassVar[bool] = True

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        assert me in view.members
        self.me = me
        self.view = view
        self.options = options
        self._view_id = view.id
        self.ranks = {member: rank for rank, member in enumerate(view.members)}
        self._dependencies = (0,) * len(view.members)
        self.position_next = position
        self.has_safe = False
        self.stalls = StallMeter()
        self.outgoing = PriorityQueue(options.policy, options.queue_max, options.queue_bytes_max)
        self.blocked: dict[ProcessId, bool] = {}
        self._ordered_batches: deque[OrderedBatch] = deque()
        self._outputs: list[Output] = []
        self._handlers: dict[type, Callable[[Any, int], None]] = {
            Broadcast: self.on_broadcast,
            Received: self.on_received,
            Turn: self.on_turn,
            Consume: self._on_consume,
            LinkBlocked: self._on_link_blocked,
            LinkCleared: self._on_link_cleared,
            TimerFired: self.on_timer,
        }

    def step(self, event: Input, now: int) -> list[Output]:
        """Handle one input at time `now` (nanoseconds) and return the outputs."""
        self._handlers[type(event)](event, now)
        outputs, self._outputs = self._outputs, []
        return outputs

    @classmethod
    def orderer(cls, view: View) -> ProcessId | None:  # noqa: ARG003  # most classes have none
        """The member whose queue decides the order, or None where there is no such member."""
        return None

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a position."""
        return self.outgoing.count

    @property
    @abstractmethod
    def idle(self) -> bool:
        """Whether every message that this member has to order, or has broadcast, has its position."""

    @property
    def settled(self) -> bool:
        """Whether every message that this member has broadcast has its position."""
        return not self.outgoing.count

    def head(self) -> OrderedBatch | None:
        """What the application may consume next; valid until the next step."""
        return self._ordered_batches[0] if self._ordered_batches else None

    def inspect(self, now: int) -> ProtocolInspection:
        """What status and slow-member detection need to know; changes nothing."""
        return ProtocolInspection(
            backlog=self.backlog,
            queues_of=partial(self.outgoing.inspect, now),
            unconsumed=sum(waiting.batch.count - waiting.taken for waiting in self._ordered_batches),
            stalls=self.stalls.until(now),
            stalled_ns=self.stalls.lasting(now),
        )

    def close(self) -> None:  # noqa: B027  # most classes have nothing left to do
        """The view has ended, and every packet to all is here that any continuing member has received."""

    def unconsumed(self) -> list[OrderedBatch]:
        """What has its position and was not consumed yet."""
        return list(self._ordered_batches)

    def unordered(self) -> list[Batch]:
        """This member's own messages that have no position yet, in the order in which to send them again."""
        return self.outgoing.drain()

    # Outputs, for subclasses

    def send(self, to: ProcessId, packet: Packet) -> None:
        assert not packet.TO_ALL
        self._outputs.append(Send(to, packet))

    def send_all(self, packet: Packet) -> None:
        assert packet.TO_ALL
        self._outputs.append(SendAll(packet))

    def send_each(self, packet: Packet) -> None:
        assert not packet.TO_ALL
        self._outputs.append(SendEach(packet))

    def set_timer(self, name: str, at: int) -> None:
        self._outputs.append(SetTimer(name, at))

    def cancel_timer(self, name: str) -> None:
        self._outputs.append(CancelTimer(name))

    def more_to_do(self) -> None:
        self._outputs.append(MoreToDo())

    def depends_on(self, packet_id: PacketId) -> None:
        """The positions of messages that are queued from here on depend on this packet, too."""
        rank, number = packet_id
        dependencies = self._dependencies
        if number > dependencies[rank]:
            self._dependencies = (*dependencies[:rank], number, *dependencies[rank + 1 :])

    def depends_on_all(self, numbers: Sequence[int]) -> None:
        """The positions of messages that are queued from here on depend on a packet of every member."""
        self._dependencies = tuple(map(max, self._dependencies, numbers))

    def queue_ordered(self, batch: Batch) -> None:
        """Append a batch to the order; it waits here until the application consumes it."""
        self._ordered_batches.append(
            OrderedBatch(self._view_id, self.position_next, batch, self._dependencies)
        )
        self.position_next += batch.count
        self.has_safe |= batch.scope.safe

    # Inputs, for subclasses to handle

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        self.outgoing.put(event.batch, now)

    @abstractmethod
    def on_received(self, event: Received, now: int) -> None: ...

    @abstractmethod
    def on_turn(self, event: Turn, now: int) -> None: ...

    @abstractmethod
    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        """The application consumed `count` messages of a batch; they have left the queue."""

    def on_timer(self, event: TimerFired, now: int) -> None:
        raise AssertionError(f"{self.NAME} set no timer {event.name!r}")

    def _on_consume(self, event: Consume, now: int) -> None:
        ordered_batch = self._ordered_batches[0]
        ordered_batch.taken += event.count
        assert event.count > 0 and ordered_batch.taken <= ordered_batch.batch.count
        if ordered_batch.taken == ordered_batch.batch.count:
            self._ordered_batches.popleft()
        self.on_consumed(ordered_batch.batch, event.count, now)

    def _on_link_blocked(self, event: LinkBlocked, now: int) -> None:
        self.blocked[event.peer] = True

    def _on_link_cleared(self, event: LinkCleared, now: int) -> None:
        self.blocked.pop(event.peer, None)
