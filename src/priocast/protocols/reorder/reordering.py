"""The base of both re-ordering protocols: the application's side of the queue, and the sender's.

A message has a position only when the application consumes it. Until then more urgent ones may overtake
it. The head that is offered to the application is therefore tentative: it changes with the queue.
"""

from typing import Any, ClassVar, Generic, Protocol

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import WINDOW_MAX, Broadcast, Consume, OrderingOptions, PacketId
from priocast.core.view import View
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.grants import FRAMES_PER_TURN
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.reorder.exchange import DataId, Exchange
from priocast.protocols.reorder.level_order import Insertion, InsertionT
from priocast.protocols.reorder.overtaking_bound import OvertakingBound

#: The most messages that are offered at once: enough to share the cost of a step, few to copy if overtaken.
_OFFERED_MAX = 64


class ConsumableQueue(Protocol[InsertionT]):
    """The messages that a member has received and its application has not consumed."""

    waiting: int

    def consumable(self) -> tuple[InsertionT, int] | None:
        """What may be consumed next, if anything, and how many messages of it."""

    def blocked(self) -> InsertionT | None:
        """What could be consumed if more urgent messages were decided."""

    def consume(self, insertion: InsertionT, count: int) -> None:
        """Messages were consumed that were consumable."""

    def end(self) -> None:
        """The view ends: forget what is not decided."""


class ReorderingProtocol(PacedProtocol, Generic[InsertionT]):
    """What does not depend on how the members decide where a message is inserted.

    A subclass creates the `_queue` and the `_exchange`, and contains the main loop.
    """

    PRIORITIES_ACT = "consuming"
    PARTITIONABLE = False
    QUEUED_MAX: ClassVar[int] = WINDOW_MAX

    _queue: ConsumableQueue[InsertionT]
    _exchange: Exchange[InsertionT, Any, Any]

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, _with_long_queues(options, len(view.members), self.QUEUED_MAX), position)
        self._bound = OvertakingBound(options.overtakes_max) if options.overtakes_max is not None else None
        # Caches, valid until the queue changes.
        self._tentative: OrderedBatch | None = None
        self._next: tuple[InsertionT, int] | None = None
        self._next_is_known = False

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._queue.waiting

    @property
    def idle(self) -> bool:
        return self.settled and self._exchange.nothing_due

    @property
    def settled(self) -> bool:
        return not (self.outgoing or self._exchange.own_undecided)

    @property
    def unconsumed_count(self) -> int:
        return super().unconsumed_count + self._queue.waiting

    def stall_reason(self) -> str:
        blocked = self._queue.blocked()
        return (
            f"{blocked.batch} waits until the positions of more urgent messages are decided"
            if blocked
            else ""
        )

    def bottleneck(self) -> ProcessId | None:
        """The member that could consume this one's messages; nobody, while some of them are not decided."""
        if not self.outgoing or self._exchange.own_undecided:
            return None
        slowest = self._bottleneck()
        if slowest is not None:
            return slowest if self.grants.consumed_by(slowest) < self.grants.placed_count else None
        return None if self._room(self.outgoing.head_level()) > 0 else self.me

    # Sender

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        """In a plain view all messages are of one level, also those that come from a prioritised view."""
        self.outgoing.put(event.batch if self.options.prioritised else event.batch.in_line(), now)

    def send_data(self) -> None:
        """Send own messages to all, the most urgent first."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self.outgoing:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(NumberedData(self._exchange.next_number(), batches, bottleneck))
        self.more_to_do()

    def _room(self, level: int) -> int:
        room = super()._room(level)
        return room if self._bound is None else min(room, self._bound.room(level))

    def _sent(self, batch: Batch) -> None:
        super()._sent(batch)
        if self._bound is not None:
            self._bound.sent(batch.urgency, batch.count)

    # Destination

    def accept_data(self, sender: ProcessId, rank: int, data: NumberedData) -> None:
        """Check a packet of data."""
        self._exchange.receive(sender, rank, data.number)
        self.accept(sender, data.batches, data.bottleneck)
        for batch in data.batches:
            self.has_safe |= batch.scope.safe

    def decided(self, data_id: DataId, packet_ids: list[PacketId]) -> list[InsertionT]:
        """A packet of data is decided: return its insertions, to be put into the queue."""
        insertions = self._exchange.decided(data_id, packet_ids)
        if self._bound is not None:
            for insertion in insertions:
                self._bound.waits(insertion)
        return insertions

    def queue_changed(self, now: int) -> None:
        """Discard the caches, and note whether the application has to wait."""
        self._tentative = None
        self._next_is_known = False
        self.stalls.note(bool(self._exchange.undecided) and self._queue.blocked() is not None, now)

    # Application

    def head(self) -> OrderedBatch | None:
        """What has a position already, or else what gets the next one if it is consumed now."""
        if self._ordered_batches:
            return self._ordered_batches[0]
        if self._tentative is None and (found := self._consumable()):
            insertion, count = found
            batch = insertion.next(min(count, _OFFERED_MAX))
            dependencies = self._dependencies_with(insertion)
            self._tentative = OrderedBatch(self.view.id, self.position_next, batch, dependencies)
        return self._tentative

    def _consumable(self) -> tuple[InsertionT, int] | None:
        if not self._next_is_known:
            self._next, self._next_is_known = self._queue.consumable(), True
        return self._next

    def _on_consume(self, event: Consume, now: int) -> None:
        if not self._ordered_batches:
            found = self._consumable()
            assert found is not None and event.count <= found[1]
            self._commit(found[0], event.count)
        super()._on_consume(event, now)
        self.queue_changed(now)
        if self.outgoing and self._bound is not None:
            self.more_to_do()  # The bound may allow more urgent messages now.

    def _commit(self, insertion: InsertionT, count: int) -> None:
        """Give the next messages of a batch their positions: nothing can overtake them any more."""
        batch = insertion.next(count)
        self._queue.consume(insertion, count)
        self._dependencies = self._dependencies_with(insertion)
        self.append(batch)

    def _dependencies_with(self, insertion: Insertion) -> tuple[int, ...]:
        dependencies = list(self._dependencies)
        for rank, number in insertion.packet_ids:
            dependencies[rank] = max(dependencies[rank], number)
        return tuple(dependencies)

    def close(self) -> None:
        """Give all that is decided its position, in the order in which it would have been consumed."""
        self._queue.end()
        self._tentative = self._next = None
        self._next_is_known = True
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
