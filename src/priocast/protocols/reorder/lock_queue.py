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

Consecutive messages of one level have the same locks (what has locked one of them has locked the end of the
queue from a more urgent message on), and are kept as one *block*. Every step goes back from the end of the
queue, block by block, as far as its messages are less urgent, so its cost depends on the levels in use and
not on how many messages wait.
"""

from priocast.core.message import Batch
from priocast.protocols.reorder.consumable_queue import ConsumableQueue
from priocast.protocols.reorder.consumed_history import ConsumedHistory
from priocast.protocols.reorder.level_order import InsertionId, LevelOrder
from priocast.protocols.reorder.lock_block import Block, Lock, LockInsertion
from priocast.protocols.reorder.message_sets import MessageName, MessageSet, Stream

_ABOVE_ALL = 1 << 16
_BELOW_ALL = -1


class LockQueue(ConsumableQueue[LockInsertion]):
    """The queue of one member, the batches that wait to be inserted, and the consumed-history.

    `blocks` begin with the dummy head and end with the dummy tail.
    """

    def __init__(self, rank: int, members: int) -> None:
        super().__init__()
        self._rank = rank
        self._members = members
        self.blocks = [Block(_ABOVE_ALL, set()), Block(_BELOW_ALL, set())]
        self.history = ConsumedHistory(members)
        self._orders: dict[int, LevelOrder[LockInsertion]] = {}
        self._received: dict[Stream, int] = {}
        self._inserted: dict[Stream, int] = {}
        # The levels whose first batch the wait rule keeps.
        self._deferred: dict[int, None] = {}

    # Lock phase

    def lock(self, batch: Batch, identity: InsertionId) -> tuple[LockInsertion, MessageSet]:
        """A batch was received: lock its target-tail, and return which messages that is, in one step."""
        order = self._orders.get(batch.urgency)
        if order is None:
            order = self._orders[batch.urgency] = LevelOrder(self._rank, self._members)
        stream = (batch.urgency, identity[0])
        insertion = LockInsertion(batch, identity, order.propose(), self._received.get(stream, 0))
        self._received[stream] = insertion.end
        self.waiting += batch.count
        order.receive(insertion)
        tail = MessageSet()
        for block in self._target_tail(insertion.level):
            block.locks.add(insertion.lock)
            tail.extend(block.spans)
        return insertion, tail

    def _target_tail(self, level: int) -> list[Block]:
        """From after the last message that is at least as urgent, to the dummy tail (equation 2)."""
        start = len(self.blocks)
        while self.blocks[start - 1].level < level:
            start -= 1
        return self.blocks[start:]

    # Decision

    def first_of(self, common: MessageSet) -> MessageName | None:
        """The first message of a common-set, which is the provisional insertion point; None for the tail."""
        found, starts = None, len(common.spans)
        for block in reversed(self.blocks):
            if not starts:
                break
            for stream, (first, end) in block.spans.items():
                span = common.spans.get(stream)
                if span is not None and first < span[1] and span[0] < end:
                    found = block
                    starts -= first <= span[0]
        return None if found is None else found.first_in(common)

    def has_locked(self, insertion: LockInsertion, point: MessageName | None) -> bool:
        """Whether a batch has locked this message here, as it must have locked its insertion point."""
        index = self._index(point)
        return index is not None and insertion.lock in self.blocks[index].locks

    # Insertion phase

    def decide(
        self, insertion: LockInsertion, number: int, point: MessageName | None, history: MessageSet
    ) -> None:
        """It is decided where a batch goes: insert it as soon as the wait rule allows."""
        insertion.point, insertion.history = point, history
        self._orders[insertion.level].decide(insertion, number)
        self._insert_ready([insertion.level])

    def _insert_ready(self, levels: list[int]) -> None:
        """Insert what may be inserted of these levels, and then what has waited for that."""
        while levels:
            inserted = [level for level in levels if self._insert_level(level)]
            levels = list(self._deferred) if inserted else []

    def _insert_level(self, level: int) -> bool:
        """Insert the first batches of a level, as far as the wait rule allows; return whether it did."""
        order, inserted = self._orders[level], False
        while insertion := order.head():
            if not self._may_insert(insertion):
                self._deferred[level] = None
                return inserted
            order.remove_head()
            self._insert(insertion)
            inserted = True
        self._deferred.pop(level, None)
        return inserted

    def _may_insert(self, insertion: LockInsertion) -> bool:
        """The wait rule: everything that was consumed at another member is inserted here."""
        spans = insertion.history.spans.items()
        return all(end <= self._inserted.get(stream, 0) for stream, (_, end) in spans)

    def _insert(self, insertion: LockInsertion) -> None:
        provisional = self._index(insertion.point)
        assert provisional is not None, f"{insertion.batch} has lost its insertion point"
        if insertion.point is not None:
            provisional = self._split(provisional, insertion.point)
        point = self.blocks[provisional]
        index = self._definitive(insertion, provisional)
        block = self.blocks[index - 1]
        if block.level != insertion.level:
            block = Block(insertion.level, self._inherited(insertion, point))
            self.blocks.insert(index, block)
            index += 1
        block.append(insertion, insertion.first, insertion.end)
        self._unlock(insertion, index)
        self._inserted[insertion.stream] = insertion.end

    def _inherited(self, insertion: LockInsertion, point: Block) -> set[Lock]:
        """The locks of more urgent batches that are inserted at the same point (step 1)."""
        return {lock for lock in point.locks if lock[0] > insertion.level}

    def _definitive(self, insertion: LockInsertion, index: int) -> int:
        """Before the less urgent messages that nobody had consumed (step 2, equation 6).

        Those of a block that somebody had consumed are its first ones, because a level has one order.
        """
        while True:
            before = self.blocks[index - 1]
            if before.level >= insertion.level or before.ends_in(insertion.history):
                return index
            if before.overlaps(insertion.history):
                return self._split(index - 1, before.first_after(insertion.history))
            index -= 1

    def _unlock(self, insertion: LockInsertion, end: int) -> None:
        """Release the batch's locks, and those of less urgent batches on everything up to it (step 3).

        What is before a message that is at least as urgent lost those when that one was inserted.
        """
        level, released = insertion.level, insertion.lock
        index = len(self.blocks) - 1
        while index >= end or self.blocks[index].level <= level:
            block = self.blocks[index]
            block.locks.discard(released)
            if index < end:
                block.locks = {lock for lock in block.locks if lock[0] >= level}
            index -= 1

    def _index(self, point: MessageName | None) -> int | None:
        """The block that a message is in."""
        index = len(self.blocks) - 1
        if point is not None:
            while index and point not in self.blocks[index]:
                index -= 1
        return index or None

    def _split(self, index: int, name: MessageName) -> int:
        """Let a block begin with this message; return its index then."""
        front = self.blocks[index].split(name)
        if not front.segments:
            return index
        self.blocks.insert(index, front)
        return index + 1

    # Application

    def consumable(self) -> tuple[LockInsertion, int] | None:
        """The first message unless it is locked (figure 1), and how many of its batch may follow."""
        first = self.blocks[1]
        if first.locks or not first.segments:
            return None
        segment = first.segments[0]
        return segment.insertion, segment.end - segment.first

    def blocked(self) -> LockInsertion | None:
        """What could be consumed if it were not locked."""
        first = self.blocks[1]
        return first.segments[0].insertion if first.locks and first.segments else None

    def consume(self, insertion: LockInsertion, count: int) -> None:
        """The first messages were consumed."""
        first = self.blocks[1]
        consumed = first.consume(count)
        assert consumed is insertion
        if not first.segments:
            del self.blocks[1]
        insertion.taken += count
        self.waiting -= count
        self.history.add(insertion.stream, count)

    # End of the view

    def end(self) -> None:
        """Insert all that is decided, and forget the rest: no member of the next view waits for it."""
        for order in self._orders.values():
            for insertion in order.drop_undecided():
                self.waiting -= insertion.batch.count
                for block in self.blocks:
                    block.locks.discard(insertion.lock)
        self._forget_lost_messages()
        self._insert_ready(list(self._orders))

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
