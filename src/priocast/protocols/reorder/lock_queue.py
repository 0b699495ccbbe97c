"""The consumable queue with lock-sets: one queue into which urgent messages are inserted.

A message is inserted in two phases. In the *lock phase*, when a member receives it, it locks its
target-tail: the messages at the end of the queue that are less urgent (equations 2 and 3). When all
members have said which ones these were, and what their applications had consumed, the *insertion phase*
inserts the message before the first one that all of them have locked, and releases its locks. Other
messages may have been inserted at the same point in the meantime, so:

- the message inherits the locks that more urgent ones have on its provisional insertion point;
- its definitive insertion point is before the less urgent ones that were inserted there in the meantime,
  except for those that some member had consumed when it received this one (equation 6);
- it is not inserted before those are (the wait rule), nor before those of its level that precede it.

The queue has a dummy head and a dummy tail. The tail is locked like any message, and what is inserted before
it inherits its locks. So neither the lowest level nor an empty queue is a special case.
"""

from priocast.core.message import Batch
from priocast.protocols.reorder.consumed_history import ConsumedHistory
from priocast.protocols.reorder.level_order import Insertion, InsertionId, LevelOrder
from priocast.protocols.reorder.message_sets import MessageName, MessageSet, Stream

_ABOVE_ALL = 1 << 16
_BELOW_ALL = -1

Lock = tuple[int, InsertionId]
"""The batch that has locked a message: its level and its id."""


class LockInsertion(Insertion):
    """A batch that is inserted, the number of its first message, and what was decided.

    `point` is the provisional insertion point, None for the tail. `history` is the history-set: what some
    member had consumed when it received the batch.
    """

    __slots__ = ("first", "history", "point", "stream")

    def __init__(self, batch: Batch, identity: InsertionId, proposal: int, first: int) -> None:
        super().__init__(batch, identity, proposal)
        self.first = first
        self.stream: Stream = (self.level, identity[0])
        self.point: MessageName | None = None
        self.history = MessageSet()

    @property
    def lock(self) -> Lock:
        return (self.level, self.id)

    @property
    def end(self) -> int:
        """The number after its last message."""
        return self.first + self.batch.count

    def names(self) -> list[MessageName]:
        """The names of its messages."""
        return [(*self.stream, number) for number in range(self.first, self.end)]


class QueueElement:
    """A message in the queue, or a dummy at one of its ends, and its lock-set."""

    __slots__ = ("insertion", "level", "locks", "name")

    def __init__(
        self,
        level: int,
        locks: set[Lock],
        name: MessageName | None = None,
        insertion: LockInsertion | None = None,
    ) -> None:
        self.level = level
        self.locks = locks
        self.name = name
        self.insertion = insertion


class LockQueue:
    """The queue of one member, the batches that wait to be inserted, and the consumed-history.

    `waiting` counts the messages that were received and not consumed.
    """

    def __init__(self, rank: int, members: int) -> None:
        self._rank = rank
        self._members = members
        self.elements = [QueueElement(_ABOVE_ALL, set()), QueueElement(_BELOW_ALL, set())]
        self.history = ConsumedHistory(members)
        self.waiting = 0
        self._orders: dict[int, LevelOrder[LockInsertion]] = {}
        self._received: dict[Stream, int] = {}
        self._inserted: dict[Stream, int] = {}

    # Lock phase

    def lock(self, batch: Batch, identity: InsertionId) -> tuple[LockInsertion, MessageSet]:
        """A batch was received: lock its target-tail, and return which messages that is, in one step."""
        order = self._orders.setdefault(batch.urgency, LevelOrder(self._rank, self._members))
        stream = (batch.urgency, identity[0])
        insertion = LockInsertion(batch, identity, order.propose(), self._received.get(stream, 0))
        self._received[stream] = insertion.end
        self.waiting += batch.count
        order.receive(insertion)
        tail = MessageSet()
        for element in self._target_tail(insertion.level):
            element.locks.add(insertion.lock)
            if element.name is not None:
                tail.add(element.name)
        return insertion, tail

    def _target_tail(self, level: int) -> list[QueueElement]:
        """From after the last message that is at least as urgent, to the dummy tail (equation 2)."""
        start = len(self.elements)
        while self.elements[start - 1].level < level:
            start -= 1
        return self.elements[start:]

    # Decision

    def first_of(self, common: MessageSet) -> MessageName | None:
        """The first message of a common-set, which is the provisional insertion point; None for the tail."""
        names = (element.name for element in self.elements if element.name is not None)
        return next((name for name in names if name in common), None)

    def has_locked(self, insertion: LockInsertion, point: MessageName | None) -> bool:
        """Whether a batch has locked this message here, as it must have locked its insertion point."""
        index = self._index(point)
        return index is not None and insertion.lock in self.elements[index].locks

    # Insertion phase

    def decide(
        self, insertion: LockInsertion, number: int, point: MessageName | None, history: MessageSet
    ) -> None:
        """It is decided where a batch goes: insert it as soon as the wait rule allows."""
        insertion.point, insertion.history = point, history
        self._orders[insertion.level].decide(insertion, number)
        self._insert_ready()

    def _insert_ready(self) -> None:
        """Insert all that may be inserted; others may have waited for each of them."""
        inserted = True
        while inserted:
            inserted = False
            for order in self._orders.values():
                while (insertion := order.head()) and self._may_insert(insertion):
                    order.remove_head()
                    self._insert(insertion)
                    inserted = True

    def _may_insert(self, insertion: LockInsertion) -> bool:
        """The wait rule: everything that was consumed at another member is inserted here."""
        spans = insertion.history.spans.items()
        return all(end <= self._inserted.get(stream, 0) for stream, (_, end) in spans)

    def _insert(self, insertion: LockInsertion) -> None:
        provisional = self._index(insertion.point)
        assert provisional is not None, f"{insertion.batch} has lost its insertion point"
        locks = self._inherited(insertion, self.elements[provisional])
        index = self._definitive(insertion, provisional)
        self.elements[index:index] = [
            QueueElement(insertion.level, set(locks), name, insertion) for name in insertion.names()
        ]
        self._unlock(insertion, index + insertion.batch.count)
        self._inserted[insertion.stream] = insertion.end

    def _inherited(self, insertion: LockInsertion, point: QueueElement) -> set[Lock]:
        """The locks of more urgent batches that are inserted at the same point (step 1)."""
        return {lock for lock in point.locks if lock[0] > insertion.level}

    def _definitive(self, insertion: LockInsertion, index: int) -> int:
        """Before the less urgent messages that nobody had consumed (step 2, equation 6)."""
        while True:
            before = self.elements[index - 1]
            if before.level >= insertion.level or (
                before.name is not None and before.name in insertion.history
            ):
                return index
            index -= 1

    def _unlock(self, insertion: LockInsertion, end: int) -> None:
        """Release the batch's locks, and those of less urgent batches on everything up to it (step 3)."""
        level, released = insertion.level, insertion.lock
        for index, element in enumerate(self.elements):
            if element.locks:
                element.locks.discard(released)
                if index < end:
                    element.locks = {lock for lock in element.locks if lock[0] >= level}

    def _index(self, point: MessageName | None) -> int | None:
        if point is None:
            return len(self.elements) - 1
        return next((index for index, element in enumerate(self.elements) if element.name == point), None)

    # Application

    def consumable(self) -> tuple[LockInsertion, int] | None:
        """The first message unless it is locked (figure 1), and how many of its batch may follow."""
        insertion = self.elements[1].insertion
        if insertion is None or self.elements[1].locks:
            return None
        count = 0
        while self.elements[1 + count].insertion is insertion and not self.elements[1 + count].locks:
            count += 1
        return insertion, count

    def blocked(self) -> LockInsertion | None:
        """What could be consumed if it were not locked."""
        first = self.elements[1]
        return first.insertion if first.locks else None

    def consume(self, insertion: LockInsertion, count: int) -> None:
        """The first messages were consumed."""
        assert all(element.insertion is insertion for element in self.elements[1 : 1 + count])
        del self.elements[1 : 1 + count]
        insertion.taken += count
        self.waiting -= count
        self.history.add(insertion.stream, count)

    # End of the view

    def end(self) -> None:
        """Insert all that is decided, and forget the rest: no member of the next view waits for it."""
        for order in self._orders.values():
            for insertion in order.drop_undecided():
                self.waiting -= insertion.batch.count
                for element in self.elements:
                    element.locks.discard(insertion.lock)
        self._forget_lost_messages()
        self._insert_ready()

    def _forget_lost_messages(self) -> None:
        """Remove from the histories what no member of the next view has a decision about."""
        left = [insertion for order in self._orders.values() for insertion in order.decided()]
        ends = dict(self._inserted)
        for insertion in left:
            ends[insertion.stream] = max(insertion.end, ends.get(insertion.stream, 0))
        for insertion in left:
            spans = insertion.history.spans.items()
            insertion.history = MessageSet(
                {stream: (first, min(end, ends.get(stream, 0))) for stream, (first, end) in spans}
            )
