"""Queues by level in which what is urgent may still overtake what waits: the cut form of re-ordering.

A message joins the queue of its level. Within a level, messages are in one order that all members agree on.
Between levels an agreed *cut* says which messages of each lower level go before the joining one: all up to
the last that any member had consumed when it received it. From cuts and the orders of the levels follows one
order of everything, although no member knows it beforehand; a member consumes the head of a level when

- it has consumed what the head's cut names of each lower level, and all before it, and
- for each higher level in which messages wait, that level's head and its cut are known, and the cut says
  that this message goes before it.

At most one head can be consumed at any time. (The rules are those of the priority-based totally ordered
multicast with lock-sets, in a simpler form: see decision 19.)
"""

from priocast.core.message import Batch
from priocast.protocols.reorder.level_order import Join, JoinId, LevelOrder

#: A place in a level: the number of a batch, and how many of its messages are before that place.
Place = tuple[int, int]
Cut = dict[int, Place]

_START: Place = (0, 0)


class CutJoin(Join):
    """A batch with its cut: up to which place the messages of each lower level go before it.

    Until that is agreed on, `cut` is this member's own part of it.
    """

    __slots__ = ("cut",)

    def __init__(self, batch: Batch, identity: JoinId, proposal: int, cut: Cut) -> None:
        super().__init__(batch, identity, proposal)
        self.cut = cut

    def count_before(self, place: Place) -> int:
        """How many of its messages that were not consumed are before a place in its level."""
        number, taken = place
        assert self.final is not None
        if self.final == number:
            return max(0, taken - self.taken)
        return self.left if self.final < number else 0

    def lets_pass(self, lower: "CutJoin") -> int:
        """How many messages of the head of a lower level go before this one."""
        place = self.cut.get(lower.level)
        return 0 if place is None else lower.count_before(place)


class Level(LevelOrder[CutJoin]):
    """One level's queue at one member: how many messages wait in it, and up to where they were consumed."""

    def __init__(self, rank: int, members: int) -> None:
        super().__init__(rank, members)
        self.consumed = _START
        self.waiting = 0

    def receive(self, join: CutJoin) -> None:
        super().receive(join)
        self.waiting += join.batch.count

    def consume(self, count: int) -> None:
        """Messages of the head were consumed."""
        join = self.head()
        assert join is not None and join.final is not None and count <= join.left
        join.taken += count
        self.consumed = (join.final, join.taken)
        self.waiting -= count
        if not join.left:
            self.leave()

    def drop_open(self) -> list[CutJoin]:
        dropped = super().drop_open()
        self.waiting -= sum(join.left for join in dropped)
        return dropped


class Levels:
    """The queues of all levels in use at one member."""

    def __init__(self, rank: int, members: int) -> None:
        self._rank = rank
        self._members = members
        self._levels: dict[int, Level] = {}
        self._ended = False

    def __getitem__(self, level: int) -> Level:
        found = self._levels.get(level)
        if found is None:
            found = self._levels[level] = Level(self._rank, self._members)
            self._levels = dict(sorted(self._levels.items(), reverse=True))
        return found

    @property
    def waiting(self) -> int:
        """How many messages were received and not consumed."""
        return sum(level.waiting for level in self._levels.values())

    def consumed_below(self, level: int) -> Cut:
        """Up to where the messages of each lower level were consumed here."""
        return {
            number: below.consumed
            for number, below in self._levels.items()
            if number < level and below.consumed != _START
        }

    def consumable(self) -> tuple[CutJoin, int] | None:
        """The head that may be consumed, if there is one, and how many of its messages.

        There is no second one, so nothing below it is looked at.
        """
        above: list[CutJoin] = []
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
            if count and not self._lacks(head):
                return head, count
            above.append(head)
        return None

    def blocked(self) -> CutJoin | None:
        """A head that could be consumed if more were known about the levels above it."""
        unknown = False
        above: list[CutJoin] = []
        for level in self._levels.values():
            if not level.waiting:
                continue
            head = level.head()
            if head is None:
                unknown = True
                continue
            if all(higher.lets_pass(head) for higher in above) and not self._lacks(head):
                return head if unknown else None
            above.append(head)
        return None

    def consume(self, join: CutJoin, count: int) -> None:
        """The next messages of a join were consumed."""
        self[join.level].consume(count)

    def end(self) -> None:
        """Forget what was not agreed on, and wait for it no more.

        Whoever consumed it is gone, although cuts may name it.
        """
        self._ended = True
        for level in self._levels.values():
            level.drop_open()

    def first_left(self) -> tuple[CutJoin, int]:
        """What is to be consumed next, where nothing is open any more."""
        found = self.consumable()
        assert found is not None, "what is agreed on has one order"
        return found

    def _lacks(self, join: CutJoin) -> bool:
        """Whether messages of lower levels have to be consumed before this one."""
        for number, place in join.cut.items():
            if number < join.level and self._is_short_of(number, place):
                return True
        return False

    def _is_short_of(self, number: int, place: Place) -> bool:
        """Whether messages of this level that are before a place have to be consumed yet."""
        level = self._levels.get(number)
        if level is None or level.consumed >= place:
            return level is None and not self._ended
        head = level.head()
        return not self._ended or (head is not None and head.count_before(place) > 0)
