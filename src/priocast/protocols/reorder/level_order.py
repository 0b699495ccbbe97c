"""Messages that join a queue, and the one order on which all members agree within each level."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from priocast.core.message import Batch, pack

JoinId = tuple[int, int, int]


class Join:
    """A batch that joins the queue of its level; `taken` of its messages were consumed.

    The place in the level is known when `final` is: the largest of the numbers that the members proposed.
    `marks` are those of the packets by which it is known.
    """

    __slots__ = ("_payloads", "batch", "final", "id", "level", "packet_ids", "proposal", "taken")

    def __init__(self, batch: Batch, identity: JoinId, proposal: int) -> None:
        self.batch = batch
        self.level = batch.urgency
        self.id = identity
        self.proposal = proposal
        self.final: int | None = None
        self.packet_ids: list[tuple[int, int]] = []
        self.taken = 0
        self._payloads: list[bytes] | None = None

    @property
    def left(self) -> int:
        """How many of its messages were not consumed."""
        return self.batch.count - self.taken

    def next(self, count: int) -> Batch:
        """The next messages of the batch, which is opened once."""
        batch, start, stop = self.batch, self.taken, self.taken + count
        if (start, stop) == (0, batch.count):
            return batch
        if self._payloads is None:
            self._payloads = batch.payloads()
        payloads, priorities = self._payloads[start:stop], batch.priorities[start:stop]
        return pack(batch.sender, batch.level, batch.first + start, payloads, priorities, batch.scope)


JoinT = TypeVar("JoinT", bound=Join)


class LevelOrder(Generic[JoinT]):
    """The order of one level at one member: by the agreed numbers (Skeen), and by name among equals.

    If members are told their ranks, no two of them propose one number: then there are no equals.
    """

    def __init__(self, rank: int = 0, members: int = 1) -> None:
        self.clock = 0
        self._rank = rank
        self._members = members
        self._agreed: list[tuple[int, JoinId, JoinT]] = []
        self._open: list[tuple[int, JoinId, JoinT]] = []

    def propose(self) -> int:
        """The next number, higher than any that this member has proposed or knows to be agreed."""
        self.clock = (self.clock // self._members + 1) * self._members + self._rank
        return self.clock

    def receive(self, join: JoinT) -> None:
        """A batch joins; until its number is agreed on it may turn out to be the first."""
        heappush(self._open, (join.proposal, join.id, join))

    def agree(self, join: JoinT, number: int) -> None:
        """All members know, or will know, the number of a batch."""
        join.final = number
        self.clock = max(self.clock, number)
        heappush(self._agreed, (number, join.id, join))

    def head(self) -> JoinT | None:
        """The first batch of the level, if it is known which one that is."""
        while self._open and self._open[0][2].final is not None:
            heappop(self._open)
        if not self._agreed or (self._open and self._open[0][:2] < self._agreed[0][:2]):
            return None
        return self._agreed[0][2]

    def leave(self) -> None:
        """The head leaves."""
        heappop(self._agreed)

    def agreed(self) -> list[JoinT]:
        """All batches whose numbers are agreed on, in order."""
        return [entry[2] for entry in sorted(self._agreed, key=lambda entry: entry[:2])]

    def in_order(self) -> Iterator[JoinT]:
        """The batches whose places in the level are known, in order."""
        first_open = min((entry[:2] for entry in self._open if entry[2].final is None), default=None)
        for join in self.agreed():
            assert join.final is not None
            if first_open is not None and first_open < (join.final, join.id):
                return
            yield join

    def drop_open(self) -> list[JoinT]:
        """Forget what has no agreed number."""
        dropped = [entry[2] for entry in self._open if entry[2].final is None]
        self._open.clear()
        return dropped
