"""The base of both re-ordering protocols: the main loop, and the two sides of the queue.

A message has a position only when the application consumes it. Until then more urgent ones may overtake
it. The head that is offered to the application is therefore tentative: it changes with the queue.
"""

from abc import abstractmethod
from typing import ClassVar, Generic

import msgspec

from priocast.core.compiling import mypyc_attr
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import (
    WINDOW_MAX,
    Broadcast,
    Consume,
    OrderingOptions,
    PacketId,
    Received,
    TimerFired,
    Turn,
)
from priocast.core.view import View
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.reorder.acknowledgments import (
    Acknowledgments,
    AcknowledgmentsToAll,
    AcknowledgmentT,
    Decisions,
    DecisionT,
)
from priocast.protocols.reorder.consumable_queue import ConsumableQueue
from priocast.protocols.reorder.exchange import Exchange, ExchangePackets
from priocast.protocols.reorder.exchange_pause import ExchangePause
from priocast.protocols.reorder.level_order import Insertion, InsertionT
from priocast.protocols.reorder.offer_size import OfferSize
from priocast.protocols.reorder.overtaking_bound import OvertakingBound

_PAUSE = "pause"


@mypyc_attr(allow_interpreted_subclasses=True)
class ReorderingProtocol(PacedProtocol, Generic[InsertionT, AcknowledgmentT, DecisionT]):
    """What does not depend on how the members decide where a message is inserted.

    A subclass passes the queue, and says what a member does with data (`_on_data`), how it decides
    (`_decision`), when the decision of another member is wrong (`_check_decision`), and how a decision is
    carried out (`_insert`).
    """

    PRIORITIES_ACT = "consuming"
    PARTITIONABLE = False
    # A policy compares when messages entered one queue. Here each member has its queue and its clock, and the
    # guarantee (Priority accounting) is by priority alone. `overtakes_max` bounds overtaking instead.
    TAKES_STARVATION_POLICY = False
    QUEUED_MAX: ClassVar[int] = WINDOW_MAX
    EXCHANGE_PACKETS: ClassVar[ExchangePackets]

    def __init__(
        self,
        me: ProcessId,
        view: View,
        options: OrderingOptions,
        position: int,
        queue: ConsumableQueue[InsertionT],
    ) -> None:
        super().__init__(me, view, _with_long_queues(options, len(view.members), self.QUEUED_MAX), position)
        self._queue = queue
        self._bound = OvertakingBound(options.overtakes_max) if options.overtakes_max is not None else None
        self._exchange: Exchange[InsertionT, AcknowledgmentT, DecisionT] = Exchange(
            me,
            view.members,
            options.distributed,
            self.EXCHANGE_PACKETS,
            self._decision,
            self._check_decision,
            self._insert,
        )
        # What is consumable and how it is offered, valid until the queue changes.
        self._head_is_known = False
        self._consumable: tuple[InsertionT, int] | None = None
        self._tentative: OrderedBatch | None = None
        self._offer_size = OfferSize()
        self._pause = ExchangePause()
        self._pause_timer: int | None = None

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._queue.waiting

    @property
    def idle(self) -> bool:
        return self.settled and self._exchange.nothing_due

    @property
    def settled(self) -> bool:
        return not (self.outgoing.count or self._exchange.own_undecided)

    def inspect(self, now: int) -> ProtocolInspection:
        inspection = super().inspect(now)
        blocked = self._queue.blocked()
        return msgspec.structs.replace(
            inspection,
            unconsumed=inspection.unconsumed + self._queue.waiting,
            bottleneck=self._consumer_to_wait_for(),
            stall_reason=(
                f"{blocked.batch} waits until the positions of more urgent messages are decided"
                if blocked
                else ""
            ),
        )

    def _consumer_to_wait_for(self) -> ProcessId | None:
        """The member that could consume this one's messages; nobody, while some of them are not decided."""
        if not self.outgoing.count or self._exchange.own_undecided or self._exchange.awaited:
            return None
        slowest = self._bottleneck()
        if slowest is not None:
            return slowest if self.grants.consumed_by(slowest) < self.grants.ordered_count else None
        return None if self._room(self.outgoing.head_level) > 0 else self.me

    # Main loop

    def on_turn(self, event: Turn, now: int) -> None:
        self._exchange.send_due(self)
        if not self.options.prioritised:
            self.send_data()
        elif not self._exchange.own_undecided and self._may_begin(now):
            self.send_data()
            if self._exchange.own_undecided:
                self._pause.on_begin(now)

    def on_timer(self, event: TimerFired, now: int) -> None:
        """The turn that follows begins the next exchange."""
        assert event.name == _PAUSE
        self._pause_timer = None

    def on_received(self, event: Received, now: int) -> None:
        sender, rank = event.sender, self.ranks[event.sender]
        match event.packet:
            case NumberedData() as data:
                self._accept_data(sender, rank, data)
                self._on_data(rank, data, event.packet_id)
                self.queue_changed(now)
            case Acknowledgments() as packet:
                self._exchange.receive(sender, rank, packet, event.packet_id)
            case AcknowledgmentsToAll() | Decisions() as packet:
                self._exchange.receive(sender, rank, packet, event.packet_id)
                self.queue_changed(now)
            case Consumed(total=total, window=window):
                self.grants.granted(sender, total, window)

    @abstractmethod
    def _on_data(self, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        """Queue messages and acknowledge them."""

    @abstractmethod
    def _decision(self, number: int, acknowledgments: list[AcknowledgmentT]) -> DecisionT:
        """Where the messages of a packet go, given the acknowledgments of all members."""

    @abstractmethod
    def _check_decision(self, sender: ProcessId, insertions: list[InsertionT], decision: DecisionT) -> None:
        """Raise if the decision of another member is wrong."""

    @abstractmethod
    def _insert(self, insertions: list[InsertionT], decision: DecisionT) -> None:
        """Carry a decision out."""

    # Sender

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        """In a plain view all messages are of one level, also those that come from a prioritised view."""
        self.outgoing.put(event.batch if self.options.prioritised else event.batch.in_line(), now)

    def send_data(self) -> None:
        """Send own messages to all, the most urgent first."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self.outgoing.count:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(NumberedData(self._exchange.next_number(), batches, bottleneck))
        self.more_to_do()

    def _may_begin(self, now: int) -> bool:
        """Whether to begin the next exchange: with priorities, the members exchange in rounds (decision 78).

        A member waits for the exchanges of the last round, then for its application, until another member
        begins the next round. A message that is more urgent than what it would wait for does not wait.
        """
        exchange, pause = self._exchange, self._pause
        pause.on_decided(bool(exchange.awaited), now)
        if not self.outgoing.count:
            return False
        if pause.ends_at is None:
            return self.outgoing.head_level > exchange.urgency
        if exchange.undecided or not self._queue.waiting or now >= pause.ends_at:
            return True
        head = self.head()
        if head is not None and self.outgoing.head_level > head.batch.urgency:
            return True
        if self._pause_timer != pause.ends_at:
            self._pause_timer = pause.ends_at
            self.set_timer(_PAUSE, pause.ends_at)
        return False

    def _room(self, level: int) -> int:
        room = super()._room(level)
        return room if self._bound is None else min(room, self._bound.room(level))

    def _sent(self, batch: Batch) -> None:
        super()._sent(batch)
        if self._bound is not None:
            self._bound.sent(batch.urgency, batch.count)

    # Destination

    def _accept_data(self, sender: ProcessId, rank: int, data: NumberedData) -> None:
        """Check a packet of data before it is queued."""
        self._exchange.check_number(sender, rank, data.number)
        self.accept(sender, data.batches, data.bottleneck)
        for batch in data.batches:
            self.has_safe |= batch.scope.safe

    def queue_changed(self, now: int) -> None:
        """Find the head anew when it is needed, and note whether the application has to wait."""
        self._head_is_known = False
        self.stalls.note(bool(self._exchange.undecided) and self._queue.blocked() is not None, now)

    # Application

    def head(self) -> OrderedBatch | None:
        """What has a position already, or else what gets the next one if it is consumed now."""
        if self._ordered_batches:
            return self._ordered_batches[0]
        if not self._head_is_known:
            self._find_head()
        return self._tentative

    def _find_head(self) -> None:
        self._head_is_known = True
        self._consumable = self._queue.consumable()
        if self._consumable is None:
            self._tentative = None
            return
        insertion, count = self._consumable
        batch = insertion.next(min(count, self._offer_size.count))
        dependencies = self._dependencies_with(insertion)
        self._tentative = OrderedBatch(self._view_id, self.position_next, batch, dependencies)

    def _on_consume(self, event: Consume, now: int) -> None:
        if not self._ordered_batches:
            if not self._head_is_known:
                self._find_head()
            assert self._consumable is not None and event.count <= self._consumable[1]
            self._offer_size.taken(event.count, now)
            self._commit(self._consumable[0], event.count, self._tentative)
        super()._on_consume(event, now)
        self.queue_changed(now)
        if self.outgoing.count and (self._bound is not None or not self._queue.waiting):
            self.more_to_do()  # The bound may allow more urgent messages now, or the pause be over.

    def _commit(self, insertion: InsertionT, count: int, offered: OrderedBatch | None = None) -> None:
        """Give the next messages of a batch their positions: nothing can overtake them any more.

        What was offered of it is not put together again.
        """
        if offered is None:
            batch, dependencies = insertion.next(count), self._dependencies_with(insertion)
        else:
            batch, dependencies = offered.batch, offered.dependencies
            if count != batch.count:
                batch = insertion.next(count)
        self._queue.consume(insertion, count)
        self._dependencies = dependencies
        self.append(batch)

    def _dependencies_with(self, insertion: Insertion) -> tuple[int, ...]:
        dependencies = list(self._dependencies)
        for rank, number in insertion.packet_ids:
            dependencies[rank] = max(dependencies[rank], number)
        return tuple(dependencies)

    def close(self) -> None:
        """Give all that is decided its position, in the order in which it would have been consumed."""
        self._queue.end()
        self._tentative = self._consumable = None
        self._head_is_known = True
        while self._queue.waiting:
            found = self._queue.consumable()
            assert found is not None, "what is decided has one order"
            self._commit(*found)


def _with_long_queues(options: OrderingOptions, members: int, queued_max: int) -> OrderingOptions:
    """What is queued can be overtaken, so a sender may have as much in flight as it may send at all."""
    return msgspec.structs.replace(
        options,
        window=min(queued_max, members * options.submit_max),
        window_bytes=members * options.submit_bytes_max,
    )
