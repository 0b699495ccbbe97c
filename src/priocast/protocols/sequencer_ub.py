"""Fixed sequencer, unicast-broadcast: members send to the sequencer, which numbers and broadcasts.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the sequencer,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and n frames a message (one submission, n - 1 copies), shared by all messages of a frame;
    one report of consumption per member and quarter of a window.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the sequencer's incoming queue (priority sequencing).
Reference: the cost paper, figure 1; the techniques paper, sections 5.1 and 6.1, figure 2.
Diverges: the paper's sequencer numbers a message as soon as it has one, so its queue is empty unless the
    sequencer itself is too slow, and priorities do nothing. Here a message gets its number only when every
    member has room for it: members grant a window of messages that are ordered and not yet consumed, and
    the backlog waits in the queue. `while incoming is not empty` waits for more instead of ending.
    Batches move, not messages.
"""

from collections import deque
from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.credit import Outstanding
from priocast.core.errors import PeerFault
from priocast.core.identity import NAME_LENGTH_MAX, ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.priority import class_of, limits_by_class
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions, Packet, Protocol, Received, Turn
from priocast.core.view import View
from priocast.core.window import WINDOW_FIRST, WINDOW_MAX, ConsumptionWindow

_FRAME_BATCHES_MAX = 1024
_FRAMES_PER_TURN = 8
_MILLISECOND = 1_000_000

Batches = Annotated[tuple[Batch, ...], msgspec.Meta(min_length=1, max_length=_FRAME_BATCHES_MAX)]


class Submit(Packet, frozen=True, tag="submit"):
    """From a member to the sequencer: order these."""

    batches: Batches


class Ordered(Packet, frozen=True, tag="ordered"):
    """From the sequencer to all: these are next in the order.

    `held_by` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    position: Annotated[int, msgspec.Meta(ge=0)]
    batches: Batches
    held_by: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)] = ""


class Consumed(Packet, frozen=True, tag="consumed"):
    """From a member to the sequencer: my application took `total` messages; I grant `window` more."""

    total: Annotated[int, msgspec.Meta(ge=0)]
    window: Annotated[int, msgspec.Meta(ge=1)]


class SequencerUb(Protocol):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-ub"
    PACKETS = (Submit, Ordered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        prioritised = options.prioritised
        # sender
        self._sequencer = view.coordinator
        self._unordered = Outstanding(options.submit_max, options.submit_bytes_max, prioritised)
        # destination
        self._position_first = position
        self._window = ConsumptionWindow(options.window, int(options.window_ms * _MILLISECOND))
        self._consumed = 0
        self._reported = 0
        self._unreported_bytes = 0
        self._unconsumed: deque[tuple[int, int]] = deque()
        self._granted = self._window.size
        # sequencer
        size = len(view.members)
        self._incoming = PriorityQueue(
            options.policy, size * options.submit_max, size * options.submit_bytes_max
        )
        self._number_next = position
        self._submissions = _Submissions(view, options.submit_max)
        self._room = _Room(view, options)

    @classmethod
    def orderer(cls, view: View) -> ProcessId:
        return view.coordinator

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._incoming.count

    @property
    def idle(self) -> bool:
        return not (self.outgoing or self._incoming or self._unordered.count)

    @property
    def settled(self) -> bool:
        return not (self.outgoing or self._unordered.count)

    def waiting_for(self) -> ProcessId | None:
        return self._room.held_by(self._incoming.head_level()) if self._incoming else None

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        return self._incoming.waiting(now) if self.me == self._sequencer else super().waiting(now)

    def unplaced(self) -> list[Batch]:
        return self._unordered.unplaced() + super().unplaced()

    def on_turn(self, event: Turn, now: int) -> None:
        self._submit()
        if self.me == self._sequencer:
            self._order()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_ordered(event.sender, ordered)
            case Submit(batches=batches):
                self._on_submit(event.sender, batches, now)
            case Consumed(total=total, window=window):
                self._check_sequencer(event.sender)
                self._room.granted(event.sender, total, window)

    # Sender

    def _submit(self) -> None:
        for _ in range(_FRAMES_PER_TURN):
            if self._sequencer in self.blocked:
                return
            batches = _frame(self.outgoing, self._unordered.room, self._unordered.sent)
            if not batches:
                return
            self.send(self._sequencer, Submit(batches))
        self.more_to_do()

    # Sequencer

    def _on_submit(self, sender: ProcessId, batches: tuple[Batch, ...], now: int) -> None:
        self._check_sequencer(sender)
        for batch in batches:
            self._submissions.check(sender, batch)
            self._incoming.put(batch, now)

    def _check_sequencer(self, sender: ProcessId) -> None:
        if self.me != self._sequencer:
            raise PeerFault(f"{sender} takes {self.me} for the sequencer, which is {self._sequencer}")

    def _order(self) -> None:
        for _ in range(_FRAMES_PER_TURN):
            if self.blocked:
                return
            position = self._number_next
            batches = _frame(self._incoming, self._room.of_level, self._number)
            if not batches:
                return
            held_by = self.waiting_for()
            self.send_all(Ordered(position, batches, held_by.name if held_by else ""))
        self.more_to_do()

    def _number(self, batch: Batch) -> None:
        self._number_next += batch.count
        self._submissions.ordered(batch)
        self._room.ordered(batch)

    # Destination

    def _on_ordered(self, sender: ProcessId, ordered: Ordered) -> None:
        if sender != self._sequencer or ordered.position != self.position_next:
            raise PeerFault(
                f"{sender} orders position {ordered.position}; "
                f"expected {self.position_next} from {self._sequencer}"
            )
        held = ordered.held_by == self.me.name
        for batch in ordered.batches:
            self.queue_ordered(self.position_next, batch)
            self._unconsumed.append((self.position_next, len(batch.block)))
            self._window.queued(batch.count, held)
            if batch.sender == self.me:
                self._unordered.placed(batch)

    def on_consumed(self, count: int, now: int) -> None:
        self._window.consumed(count, now)
        self._consumed += count
        while self._unconsumed and self._unconsumed[0][0] <= self._position_first + self._consumed:
            self._unreported_bytes += self._unconsumed.popleft()[1]
        # The sequencer waits for messages or for bytes, so a quarter of either window is worth a report.
        if (
            4 * (self._consumed - self._reported) >= self._granted
            or 4 * self._unreported_bytes >= self.options.window_bytes
        ):
            self._reported, self._granted = self._consumed, self._window.grant()
            self._unreported_bytes = 0
            self.send(self._sequencer, Consumed(self._reported, self._granted))


class _Submissions:
    """What the sequencer holds senders to: own messages, each once and in order, within their credit."""

    def __init__(self, view: View, count_max: int) -> None:
        self._count_max = count_max
        self._unordered = dict.fromkeys(view.members, 0)
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def check(self, sender: ProcessId, batch: Batch) -> None:
        """Accept a batch, or say what is wrong with it."""
        if batch.sender != sender:
            raise PeerFault(f"{sender} submits a message of {batch.sender}")
        if len(batch.priorities) not in (0, batch.count):
            raise PeerFault(f"{sender} submits {batch} with {len(batch.priorities)} priorities")
        expected = self._number_next.get((sender, batch.level), batch.first)
        if batch.first != expected:
            raise PeerFault(f"{sender} submits {batch}, where number {expected} of that level is next")
        self._number_next[sender, batch.level] = expected + batch.count
        self._unordered[sender] += batch.count
        if self._unordered[sender] > self._count_max:
            raise PeerFault(
                f"{sender} submits more than the {self._count_max} messages that it has credit for"
            )

    def ordered(self, batch: Batch) -> None:
        """Messages of a sender have their place."""
        self._unordered[batch.sender] -= batch.count
        assert self._unordered[batch.sender] >= 0


class _Room:
    """What the sequencer may order: no more than every member has granted, in messages and in bytes."""

    def __init__(self, view: View, options: OrderingOptions) -> None:
        self._reserved = options.prioritised
        self._bytes_max = options.window_bytes
        self._consumed = dict.fromkeys(view.members, 0)
        first = limits_by_class(options.window or WINDOW_FIRST, self._reserved)
        self._limits = dict.fromkeys(view.members, first)
        self._limit = first
        self._ordered = 0
        self._under_way: deque[tuple[int, int]] = deque()
        self._under_way_bytes = 0

    def of_level(self, level: int) -> int:
        """How many more messages of this level may be ordered."""
        if self._under_way_bytes >= self._bytes_max:
            return 0
        return self._limit[class_of(level)] - self._ordered

    def held_by(self, level: int) -> ProcessId | None:
        """The member for whose grant messages of this level wait, if they have to wait."""
        if self._under_way_bytes >= self._bytes_max:
            return min(self._consumed, key=lambda member: self._consumed[member])
        of_class = class_of(level)
        if self._limit[of_class] > self._ordered:
            return None
        return min(self._limits, key=lambda member: self._limits[member][of_class])

    def ordered(self, batch: Batch) -> None:
        """A batch is under way."""
        self._ordered += batch.count
        self._under_way.append((self._ordered, len(batch.block)))
        self._under_way_bytes += len(batch.block)

    def granted(self, member: ProcessId, consumed: int, window: int) -> None:
        """A member has consumed so many messages and has room for so many more."""
        if not self._consumed[member] <= consumed <= self._ordered:
            raise PeerFault(f"{member} reports {consumed} messages consumed, which cannot be")
        self._consumed[member] = consumed
        of_class = limits_by_class(min(window, WINDOW_MAX), self._reserved)
        self._limits[member] = tuple(consumed + limit for limit in of_class)
        self._limit = tuple(map(min, zip(*self._limits.values(), strict=True)))
        slowest = min(self._consumed.values())
        while self._under_way and self._under_way[0][0] <= slowest:
            self._under_way_bytes -= self._under_way.popleft()[1]


def _frame(
    queue: PriorityQueue, room: Callable[[int], int], taken: Callable[[Batch], None]
) -> tuple[Batch, ...]:
    """Take what is next in the queue and has room, up to a frame's worth."""
    batches: list[Batch] = []
    size = 0
    while queue and size < BATCH_BYTES_CUT and len(batches) < _FRAME_BATCHES_MAX:
        count = room(queue.head_level())
        if count <= 0:
            break
        batch = queue.take(count)
        taken(batch)
        batches.append(batch)
        size += len(batch.block)
    return tuple(batches)
