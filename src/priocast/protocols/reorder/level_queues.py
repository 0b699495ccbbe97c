"""Queues by level in which urgent messages may still overtake what waits: the cut form of re-ordering.

A message enters the queue of its level. Within a level, messages are in one order that all members agree
on. Between levels, each message has a *cut*: for each lower level, the last message that any member had
consumed when it received this one. All up to there go before it. Cuts and the orders of the levels
determine one order of all messages, although no member knows it beforehand. A member consumes the head of
a level when

- it has consumed what the head's cut names of each lower level, and everything before that, and
- for each higher level in which messages wait, that level's head and its cut are decided, and the cut says
  that this message goes before it.

At most one head can be consumed at any time. (The rules are those of the priority-based totally ordered
multicast with lock-sets, in a simpler form: see decision 19.)
"""

from priocast.core.message import Batch
from priocast.protocols.reorder.consumable_queue import ConsumableQueue
from priocast.protocols.reorder.level_order import Insertion, InsertionId, LevelOrder

LevelPosition = tuple[int, int]
"""A position in a level: the number of a batch, and how many of its messages are before that position."""

Cut = dict[int, LevelPosition]

_START: LevelPosition = (0, 0)


class CutInsertion(Insertion):
    """A batch with its cut: up to which position the messages of each lower level go before it.

    Until that is decided, `cut` is this member's contribution to it.
    """

    __slots__ = ("cut",)

    def __init__(self, batch: Batch, identity: InsertionId, proposal: int, cut: Cut) -> None:
        super().__init__(batch, identity, proposal)
        self.cut = cut

    def count_before(self, position: LevelPosition) -> int:
        """How many of its messages that were not consumed are before a position in its level."""
        number, taken = position
        assert self.final is not None
        if self.final == number:
            return max(0, taken - self.taken)
        return self.left if self.final < number else 0

    def lets_pass(self, lower: "CutInsertion") -> int:
        """How many messages of the head of a lower level go before this one."""
        position = self.cut.get(lower.level)
        return 0 if position is None else lower.count_before(position)


class LevelQueue(LevelOrder[CutInsertion]):
    """One level's queue at one member: how many messages wait in it, and up to where they were consumed."""

    def __init__(self, rank: int, members: int) -> None:
        super().__init__(rank, members)
        self.consumed = _START
        self.waiting = 0

    def consume(self, count: int) -> None:
        """Messages of the head were consumed."""
        insertion = self.head()
        assert insertion is not None and insertion.final is not None and count <= insertion.left
        insertion.taken += count
        self.consumed = (insertion.final, insertion.taken)
        self.waiting -= count
        if not insertion.left:
            self.remove_head()

    def drop_undecided(self) -> list[CutInsertion]:
        dropped = super().drop_undecided()
        self.waiting -= sum(insertion.left for insertion in dropped)
        return dropped


class LevelQueues(ConsumableQueue[CutInsertion]):
    """The queues of all levels in use at one member."""

    def __init__(self, rank: int, members: int) -> None:
        super().__init__()
        self._rank = rank
        self._members = members
        self._levels: dict[int, LevelQueue] = {}
        self._ended = False

    def consumed_below(self, level: int) -> Cut:
        """Up to where the messages of each lower level were consumed here."""
        return {
            number: below.consumed
            for number, below in self._levels.items()
            if number < level and below.consumed != _START
        }

    def receive(self, batch: Batch, identity: InsertionId, cut: Cut) -> CutInsertion:
        """A batch was received: queue it, and propose a number for it."""
        level = self._levels.get(batch.urgency)
        if level is None:
            level = self._levels[batch.urgency] = LevelQueue(self._rank, self._members)
            self._levels = dict(sorted(self._levels.items(), reverse=True))
        insertion = CutInsertion(batch, identity, level.propose(), cut)
        level.receive(insertion)
        level.waiting += batch.count
        self.waiting += batch.count
        return insertion

    def decide(self, insertion: CutInsertion, number: int, cut: Cut) -> None:
        """The number and the cut of a batch are decided."""
        insertion.cut = cut
        self._levels[insertion.level].decide(insertion, number)

    def consumable(self) -> tuple[CutInsertion, int] | None:
        """The head that may be consumed, if there is one, and how many of its messages.

        There is no second one, so the levels below it need not be looked at.
        """
        above: list[CutInsertion] = []
        for level in self._levels.values():
            if not level.waiting:
                continue
            head = level.head()
            if head is None:
                return None
            count = head.left
            for higher in above:
                count = min(count, higher.lets_pass(head))
                if not count:
                    break
            if count and not self._waits_for_lower(head):
                return head, count
            above.append(head)
        return None

    def blocked(self) -> CutInsertion | None:
        """A head that could be consumed if the heads of the levels above it were decided."""
        undecided = False
        above: list[CutInsertion] = []
        for level in self._levels.values():
            if not level.waiting:
                continue
            head = level.head()
            if head is None:
                undecided = True
                continue
            if all(higher.lets_pass(head) for higher in above) and not self._waits_for_lower(head):
                return head if undecided else None
            above.append(head)
        return None

    def consume(self, insertion: CutInsertion, count: int) -> None:
        """The next messages of a batch were consumed."""
        self._levels[insertion.level].consume(count)
        self.waiting -= count

    def end(self) -> None:
        """Forget what is not decided, and do not wait for it.

        Cuts may name it, but the members that consumed it are not in the next view.
        """
        self._ended = True
        for level in self._levels.values():
            self.waiting -= sum(insertion.left for insertion in level.drop_undecided())

    def _waits_for_lower(self, insertion: CutInsertion) -> bool:
        """Whether messages of lower levels must be consumed before this batch."""
        for number, position in insertion.cut.items():
            if number < insertion.level and self._waits_for(number, position):
                return True
        return False

    def _waits_for(self, number: int, position: LevelPosition) -> bool:
        """Whether messages of this level that are before a position are still to be consumed."""
        level = self._levels.get(number)
        if level is None or level.consumed >= position:
            return level is None and not self._ended
        head = level.head()
        return not self._ended or (head is not None and head.count_before(position) > 0)
