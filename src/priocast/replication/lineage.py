"""Where a log comes from: which founding it goes back to, its generations, and what the voters' disks have.

Two logs of one *history* are equal up to an index if the last entry before it is of the same generation in
both: a generation is begun once only, and its entries are those of one group, in one order. That is what Raft
calls log matching; generations are its terms.

What each member's disk is known to have is part of the state. Every log therefore says how far the others
were, and tells a directory that was rolled back to an older copy.
"""

from collections.abc import Container
from typing import Annotated

import msgspec

from priocast.core.identity import Name, Number
from priocast.core.view_reason import MEMBERS_MAX
from priocast.replication.commands import HistoryId, LogTip, Recipients

GENERATIONS_MAX = 1024


class Lineage(msgspec.Struct, array_like=True):
    """The past of one log.

    `history` identifies the first founding. `generations` are the last ones, each with the index of its first
    entry. `voters` are the members whose disks count, since the entry before `voters_since`. `acknowledged`
    is the furthest that each member said its disk has reached.
    """

    history: HistoryId = b""
    generations: Annotated[list[LogTip], msgspec.Meta(max_length=GENERATIONS_MAX)] = []
    voters: Recipients = ()
    voters_since: Number = 0
    acknowledged: Annotated[dict[Name, LogTip], msgspec.Meta(max_length=MEMBERS_MAX)] = {}

    @property
    def generation(self) -> int:
        """The number of the current generation; 0 if the group was never founded."""
        return self.generations[-1].generation if self.generations else 0

    def has_begun_before(self, index: int) -> bool:
        """Whether a log that ends at this index has an entry of the current generation."""
        return bool(self.generations) and self.generations[-1].index < index

    def begin(self, generation: int, index: int, voters: tuple[str, ...], history: bytes) -> None:
        """A generation begins with the entry at this index."""
        self.history = history
        self.generations = [*self.generations[1 - GENERATIONS_MAX :], LogTip(generation, index)]
        self.set_voters(voters, index + 1)

    def set_voters(self, voters: tuple[str, ...], since: int) -> None:
        """These members' disks count from here on."""
        self.voters, self.voters_since = voters, since

    def change_voter(self, member: str, is_voter: bool, present: Container[str], index: int) -> str:
        """One voter more or less, with the entry before `index`; return why not, if it is not possible.

        The change before must be durable: then any two majorities that count have a member in common.
        """
        if (member in self.voters) == is_voter:
            return ""
        voters = tuple(name for name in self.voters if name != member)
        if is_voter:
            if member not in present or member not in self._acknowledged_now():
                return f"{member} has no log in this group now"
            voters = tuple(sorted((*self.voters, member)))
        if not voters:
            return f"{member} is the only voter"
        if self.durable_index() < self.voters_since:
            return "the voters of now are not on the disks of a majority yet: try again"
        self.set_voters(voters, index)
        return ""

    def acknowledge(self, member: str, tip: LogTip) -> bool:
        """A member's disk has reached this; return whether that is news."""
        if tip.generation != self.generation or not self.has_begun_before(tip.index):
            return False
        if tip <= self.acknowledged.get(member, LogTip(0, 0)):
            return False
        if len(self.acknowledged) >= MEMBERS_MAX:
            known = self.acknowledged
            self.acknowledged = {name: known[name] for name in self.voters if name in known}
        self.acknowledged[member] = tip
        return True

    def durable_index(self) -> int:
        """The entries of this generation below this index are on the disks of a majority of the voters."""
        return majority_index(self.voters, self._acknowledged_now())

    def _acknowledged_now(self) -> dict[str, int]:
        generation = self.generation
        return {name: tip.index for name, tip in self.acknowledged.items() if tip.generation == generation}

    def contains(self, tip: LogTip, index: int) -> bool:
        """Whether a log that ends so is a part of this one, which ends at `index`."""
        ends = [*(each.index for each in self.generations[1:]), index]
        return any(
            begin.generation == tip.generation and tip.index <= end
            for begin, end in zip(self.generations, ends, strict=True)
        )

    def lost(self, other: "Lineage", index: int) -> LogTip | None:
        """Up to where this log proves that entries were answered which the other, up to `index`, lacks."""
        durable = LogTip(self.generation, self.durable_index())
        if not durable.index or not other.generations or other.contains(durable, index):
            return None
        return durable if durable.generation >= other.generations[0].generation else None


def majority_index(voters: tuple[str, ...], stored: dict[str, int]) -> int:
    """What a majority of the voters has reached, given what each has."""
    if not voters:
        return 0
    return sorted((stored.get(name, 0) for name in voters), reverse=True)[len(voters) // 2]
