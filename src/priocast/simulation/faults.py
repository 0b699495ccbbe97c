"""What can go wrong in a run: every fault is a named option with a unit, and all of them heal.

A fault hits a process by its name, or whoever is the coordinator when its time has come.
"""

from itertools import pairwise, permutations
from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption

MICROSECOND = 1_000
LOSS_PERCENT_MAX = 30
COORDINATOR = "coordinator"

CutKind = Literal["halves", "isolated", "one-way", "bridge", "ring"]


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not work for a while."""

    from_us: int
    for_us: int

    @property
    def until_us(self) -> int:
        """When it works again."""
        return self.from_us + self.for_us

    @property
    def time(self) -> str:
        """When and for how long, for a person."""
        return f"{self.from_us}+{self.for_us}us"


class Pause(Outage, frozen=True, kw_only=True):
    """A process stands still: it reads no frame, fires no timer and consumes nothing."""

    member: str

    def __str__(self) -> str:
        return f"{self.member}@{self.time}"


class Stall(Outage, frozen=True, kw_only=True):
    """An application consumes nothing, while its process goes on."""

    member: str

    def __str__(self) -> str:
        return f"{self.member}@{self.time}"


class NetworkCut(Outage, frozen=True, kw_only=True):
    """Frames between some processes are lost.

    *halves*: the `members` and the others hear nothing of each other. *isolated*: the one member (perhaps the
    coordinator) is alone. *one-way*: what the first member sends to the second one is lost. *bridge*: the
    first and the last member hear nothing of each other. *ring*: each of the members can talk to its two
    neighbours in the list, and to nobody else.
    """

    kind: CutKind
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}:{'-'.join(self.members)}@{self.time}"

    def blocked(self, members: tuple[str, ...], everybody: tuple[str, ...]) -> frozenset[tuple[str, str]]:
        """The directions in which nothing passes; `members` are those of the cut, with their names."""
        match self.kind:
            case "one-way":
                return frozenset({(members[0], members[-1])})
            case "bridge":
                return frozenset({(members[0], members[-1]), (members[-1], members[0])})
            case "ring":
                around = [*members, members[0]]
                linked = set(pairwise(around))
                linked |= {(other, one) for one, other in linked}
                return frozenset(
                    pair
                    for pair in permutations(everybody, 2)
                    if pair not in linked and (pair[0] in members or pair[1] in members)
                )
            case _:
                return frozenset(
                    (one, other)
                    for one, other in permutations(everybody, 2)
                    if (one in members) != (other in members)
                )


class Crash(msgspec.Struct, frozen=True, kw_only=True):
    """A process vanishes, and what it knew; what it sent before still arrives.

    With `change_packets` it vanishes when it (or, without a `member`, whoever comes first) has sent so many
    packets of a view change after `at_us`. It starts anew after `back_after_us`, if at all.
    """

    at_us: int
    member: str = ""
    change_packets: int = 0
    back_after_us: int | None = None

    def __str__(self) -> str:
        when = f"@{self.at_us}us" + (f"+{self.change_packets}packets" if self.change_packets else "")
        back = "" if self.back_after_us is None else f",back+{self.back_after_us}us"
        return f"{self.member or 'anybody'}{when}{back}"


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """A process asks the group to let it go; it may come back later."""

    at_us: int
    member: str
    back_after_us: int | None = None

    def __str__(self) -> str:
        back = "" if self.back_after_us is None else f",back+{self.back_after_us}us"
        return f"{self.member}@{self.at_us}us{back}"


class PlannedOrderChange(msgspec.Struct, frozen=True, kw_only=True):
    """A member asks for the order to be made in another way; by the same class, if no `order` is named."""

    at_us: int
    member: str
    prioritised: bool
    starvation: str
    order: str = ""

    def __str__(self) -> str:
        way = f"{'prioritised' if self.prioritised else 'plain'}/{self.starvation}"
        return f"{self.member}@{self.at_us}us:{self.order + ',' if self.order else ''}{way}"


class FaultOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong until `healed_at_us`; nothing does from then on.

    A reordered frame takes up to `reordering_us` longer, and later frames may overtake it. With
    `reconnects`, processes are told that they can reach each other again when a cut heals.
    """

    loss_percent: int = 0
    duplication_percent: int = 0
    reordering_percent: int = 0
    reordering_us: int = 0
    pauses: tuple[Pause, ...] = ()
    stalls: tuple[Stall, ...] = ()
    cuts: tuple[NetworkCut, ...] = ()
    crashes: tuple[Crash, ...] = ()
    leaves: tuple[Leave, ...] = ()
    order_changes: tuple[PlannedOrderChange, ...] = ()
    reconnects: bool = False
    healed_at_us: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.loss_percent <= LOSS_PERCENT_MAX:
            raise InvalidOption(f"loss_percent is {self.loss_percent}: it must be 0 to {LOSS_PERCENT_MAX}")
        for outage in self.outages:
            if outage.until_us > self.healed_at_us:
                raise InvalidOption(f"{outage} lasts longer than healed_at_us, which is {self.healed_at_us}")
        for end in self.ends:
            if end.at_us + (end.back_after_us or 0) > self.healed_at_us:
                raise InvalidOption(f"{end} is not over at healed_at_us, which is {self.healed_at_us}")

    @property
    def ends(self) -> list[Crash | Leave]:
        """All after which a process is gone, for a while or for good."""
        return [*self.crashes, *self.leaves]

    @property
    def outages(self) -> list[Pause | Stall | NetworkCut]:
        """All that does not work for a while."""
        return [*self.pauses, *self.stalls, *self.cuts]
