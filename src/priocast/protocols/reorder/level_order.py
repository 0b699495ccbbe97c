"""Batches that are inserted into a queue, and the order within a level, on which all members agree."""

from heapq import heappop, heappush
from typing import Generic, TypeVar

from priocast.core.message import Batch, pack

InsertionId = tuple[int, int, int]
"""The rank of the sender, the number of its packet, and the index of the batch in the packet."""


class Insertion:
    """A batch that is inserted into the queue of a member; `taken` of its messages were consumed.

    `final`, the largest of the numbers that members proposed, is its position within its level. `packet_ids`
    are the packets that its position depends on.
    """

    __slots__ = ("_payloads", "batch", "final", "id", "level", "packet_ids", "proposal", "taken")

    def __init__(self, batch: Batch, identity: InsertionId, proposal: int) -> None:
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
        """The next messages of the batch, which is decoded once."""
        batch, start, stop = self.batch, self.taken, self.taken + count
        if (start, stop) == (0, batch.count):
            return batch
        if self._payloads is None:
            self._payloads = batch.payloads()
        payloads, priorities = self._payloads[start:stop], batch.priorities[start:stop]
        return pack(batch.sender, batch.level, batch.first + start, payloads, priorities, batch.scope)


InsertionT = TypeVar("InsertionT", bound=Insertion)


class LevelOrder(Generic[InsertionT]):
    """The order of one level at one member: by the final numbers (Skeen), and by id where they are equal.

    Members that pass their ranks never propose the same number, so final numbers are never equal.
    """

    def __init__(self, rank: int = 0, members: int = 1) -> None:
        self.clock = 0
        self._rank = rank
        self._members = members
        self._decided: list[tuple[int, InsertionId, InsertionT]] = []
        self._undecided: list[tuple[int, InsertionId, InsertionT]] = []

    def propose(self) -> int:
        """The next number, higher than any that this member has proposed or knows to be final."""
        self.clock = (self.clock // self._members + 1) * self._members + self._rank
        return self.clock

    def receive(self, insertion: InsertionT) -> None:
        """A batch was received; until its number is final it may turn out to be the first."""
        heappush(self._undecided, (insertion.proposal, insertion.id, insertion))

    def decide(self, insertion: InsertionT, number: int) -> None:
        """The number of a batch is final."""
        insertion.final = number
        self.clock = max(self.clock, number)
        heappush(self._decided, (number, insertion.id, insertion))

    def head(self) -> InsertionT | None:
        """The first batch of the level, if it is known which one that is."""
        undecided = self._undecided
        while undecided and undecided[0][2].final is not None:
            heappop(undecided)
        if not self._decided or (undecided and undecided[0][:2] < self._decided[0][:2]):
            return None
        return self._decided[0][2]

    def remove_head(self) -> None:
        heappop(self._decided)

    def decided(self) -> list[InsertionT]:
        """All batches whose numbers are final, in order."""
        return [entry[2] for entry in sorted(self._decided, key=lambda entry: entry[:2])]

    def drop_undecided(self) -> list[InsertionT]:
        """Forget the batches whose numbers are not final."""
        dropped = [entry[2] for entry in self._undecided if entry[2].final is None]
        self._undecided.clear()
        return dropped
