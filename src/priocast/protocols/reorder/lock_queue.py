"""The consumable queue with locks: one queue into which urgent messages are inserted, and what waits for it.

A message joins in two phases. When it is received, it *locks* its target-tail: the messages at the end of the
queue that are less urgent (equations 2 and 3). When all members have said which ones these were, and what
their applications had consumed, it is *inserted* before the first message that all of them have locked, and
the locks are released. Meanwhile others may have been inserted at the same point, so:

- the message inherits the locks that more urgent ones have on its provisional insertion point;
- its definitive insertion point is before the less urgent ones that were inserted there in the meantime,
  except for those that somebody had consumed when it came (equation 6);
- it is not inserted before those are (the wait rule), nor before those of its level that go before it.

The queue has a dummy head and a dummy tail. The tail is locked like any message, and what is inserted before
it inherits its locks: the lowest level is no exception, and an empty queue is none, either.
"""

from priocast.core.message import Batch
from priocast.protocols.reorder.level_order import Join, JoinId, LevelOrder
from priocast.protocols.reorder.message_sets import MessageSet, Name, Stream

_ABOVE_ALL = 1 << 16
_BELOW_ALL = -1

Lock = tuple[int, JoinId]
"""Who has locked a message: its level and its name."""


class LockJoin(Join):
    """A batch that joins, its first message's number, and what was agreed on.

    `point` is the provisional insertion point, None for the tail; `history` is what some member had consumed
    when the batch came there.
    """

    __slots__ = ("first", "history", "point", "stream")

    def __init__(self, batch: Batch, identity: JoinId, proposal: int, first: int) -> None:
        super().__init__(batch, identity, proposal)
        self.first = first
        self.stream: Stream = (self.level, identity[0])
        self.point: Name | None = None
        self.history = MessageSet()

    @property
    def lock(self) -> Lock:
        return (self.level, self.id)

    @property
    def end(self) -> int:
        """The number behind its last message."""
        return self.first + self.batch.count

    def names(self) -> list[Name]:
        """The names of its messages."""
        return [(*self.stream, number) for number in range(self.first, self.end)]


class Element:
    """A message in the queue, or a dummy at its end, and its lock-set."""

    __slots__ = ("join", "level", "locks", "name")

    def __init__(self, level: int, locks: set[Lock], name: Name | None = None, join: LockJoin | None = None):
        self.level = level
        self.locks = locks
        self.name = name
        self.join = join


class LockQueue:
    """The queue of one member, by its rank, and the batches that were received and wait to be inserted."""

    def __init__(self, rank: int, members: int) -> None:
        self._rank = rank
        self._members = members
        self.elements = [Element(_ABOVE_ALL, set()), Element(_BELOW_ALL, set())]
        self.waiting = 0
        self._orders: dict[int, LevelOrder[LockJoin]] = {}
        self._received: dict[Stream, int] = {}
        self._inserted: dict[Stream, int] = {}

    # Lock phase

    def receive(self, batch: Batch, identity: JoinId) -> tuple[LockJoin, MessageSet]:
        """A batch joins: lock its target-tail, in the same step in which one reads which messages it is."""
        order = self._orders.setdefault(batch.urgency, LevelOrder(self._rank, self._members))
        stream = (batch.urgency, identity[0])
        join = LockJoin(batch, identity, order.propose(), self._received.get(stream, 0))
        self._received[stream] = join.end
        self.waiting += batch.count
        order.receive(join)
        tail = MessageSet()
        for element in self._target_tail(join.level):
            element.locks.add(join.lock)
            if element.name is not None:
                tail.add(element.name)
        return join, tail

    def _target_tail(self, level: int) -> list[Element]:
        """From behind the last message that is at least as urgent, to the dummy tail."""
        start = len(self.elements)
        while self.elements[start - 1].level < level:
            start -= 1
        return self.elements[start:]

    # Agreement

    def first_of(self, common: MessageSet) -> Name | None:
        """The first message of a common-set, which is the provisional insertion point; None: the tail."""
        names = (element.name for element in self.elements if element.name is not None)
        return next((name for name in names if name in common), None)

    def has_locked(self, join: LockJoin, point: Name | None) -> bool:
        """Whether this is a message that a joining one has locked here, as its insertion point must be."""
        index = self._index(point)
        return index is not None and join.lock in self.elements[index].locks

    # Insertion phase

    def agree(self, join: LockJoin, number: int, point: Name | None, history: MessageSet) -> None:
        """All members know, or will know, where a batch goes: insert it, or do it when it may be done."""
        join.point, join.history = point, history
        self._orders[join.level].agree(join, number)
        self._insert_ready()

    def _insert_ready(self) -> None:
        """Insert whatever may be inserted; each one may be what others have waited for."""
        inserted = True
        while inserted:
            inserted = False
            for order in self._orders.values():
                while (join := order.head()) and self._may_insert(join):
                    order.leave()
                    self._insert(join)
                    inserted = True

    def _may_insert(self, join: LockJoin) -> bool:
        """The wait rule: nothing that was consumed elsewhere may still wait here, received or not."""
        return all(end <= self._inserted.get(stream, 0) for stream, (_, end) in join.history.spans.items())

    def _insert(self, join: LockJoin) -> None:
        provisional = self._index(join.point)
        assert provisional is not None, f"{join.batch} has lost its insertion point"
        locks = self._inherited(join, self.elements[provisional])
        index = self._definitive(join, provisional)
        self.elements[index:index] = [Element(join.level, set(locks), name, join) for name in join.names()]
        self._unlock(join, index + join.batch.count)
        self._inserted[join.stream] = join.end

    def _inherited(self, join: LockJoin, point: Element) -> set[Lock]:
        """The locks of more urgent messages that join at the same point (step 1)."""
        return {lock for lock in point.locks if lock[0] > join.level}

    def _definitive(self, join: LockJoin, index: int) -> int:
        """Go before less urgent messages that nobody had consumed (step 2, the locking interval)."""
        while True:
            before = self.elements[index - 1]
            if before.level >= join.level or (before.name is not None and before.name in join.history):
                return index
            index -= 1

    def _unlock(self, join: LockJoin, end: int) -> None:
        """Release the batch's locks, and those of less urgent ones on all up to it (step 3)."""
        for element in self.elements:
            element.locks.discard(join.lock)
        for element in self.elements[:end]:
            element.locks = {lock for lock in element.locks if lock[0] >= join.level}

    def _index(self, point: Name | None) -> int | None:
        if point is None:
            return len(self.elements) - 1
        return next((index for index, element in enumerate(self.elements) if element.name == point), None)

    # Application

    def consumable(self) -> tuple[LockJoin, int] | None:
        """The first message, unless it is locked (figure 1), with those of its batch that follow likewise."""
        join = self.elements[1].join
        if join is None or self.elements[1].locks:
            return None
        count = 0
        while self.elements[1 + count].join is join and not self.elements[1 + count].locks:
            count += 1
        return join, count

    def blocked(self) -> LockJoin | None:
        """What could be consumed if it were not locked."""
        first = self.elements[1]
        return first.join if first.locks else None

    def consume(self, join: LockJoin, count: int) -> None:
        """The first messages were consumed."""
        assert all(element.join is join for element in self.elements[1 : 1 + count])
        del self.elements[1 : 1 + count]
        join.taken += count
        self.waiting -= count

    # The end of the view

    def end(self) -> None:
        """Insert all that was agreed on, and forget the rest, which nobody who goes on waits for."""
        for order in self._orders.values():
            for join in order.drop_open():
                self.waiting -= join.batch.count
                for element in self.elements:
                    element.locks.discard(join.lock)
        self._forget_what_is_gone()
        self._insert_ready()

    def _forget_what_is_gone(self) -> None:
        """A history may name messages on which nobody who goes on has agreed; they bind nobody."""
        left = [join for order in self._orders.values() for join in order.agreed()]
        ends = dict(self._inserted)
        for join in left:
            ends[join.stream] = max(join.end, ends.get(join.stream, 0))
        for join in left:
            spans = join.history.spans.items()
            join.history = MessageSet(
                {stream: (first, min(end, ends.get(stream, 0))) for stream, (first, end) in spans}
            )

    def first_left(self) -> tuple[LockJoin, int]:
        """The first message, where nothing is locked any more."""
        found = self.consumable()
        assert found is not None
        return found
