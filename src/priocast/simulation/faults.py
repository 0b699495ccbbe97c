"""The faults of a run: every fault is a named option with a unit, and all of them heal.

A fault affects the process that it names, or the member that is the coordinator when the fault begins.
"""

from itertools import pairwise, permutations
from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption

MICROSECOND = 1_000
LOSS_PERCENT_MAX = 30
COORDINATOR = "coordinator"

CutKind = Literal["halves", "isolated", "one-way", "bridge", "ring"]
#: The kinds of fault of which a run can have one alone; `network` are loss, duplication and reordering.
FaultKind = Literal["none", "network", "crash", "cut", "pause", "stall", "leave", "order-change"]
NetworkFaultKind = Literal["inconsistency", "corruption", "omissions", "half duplex", "disorder", "delay"]


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not work for a limited time."""

    from_us: int
    for_us: int

    @property
    def until_us(self) -> int:
        """When it works again."""
        return self.from_us + self.for_us

    @property
    def time(self) -> str:
        """Start and duration as text."""
        return f"{self.from_us}+{self.for_us}us"


class Pause(Outage, frozen=True, kw_only=True):
    """A process is suspended: it reads no frame, fires no timer and consumes nothing."""

    member: str

    def __str__(self) -> str:
        return f"{self.member}@{self.time}"


class Stall(Outage, frozen=True, kw_only=True):
    """An application consumes nothing, while its process continues."""

    member: str

    def __str__(self) -> str:
        return f"{self.member}@{self.time}"


class NetworkCut(Outage, frozen=True, kw_only=True):
    """Frames between some processes are lost.

    *halves*: nothing passes between the `members` and the others. *isolated*: nothing passes between the one
    member (perhaps the coordinator) and the others. *one-way*: what the first member sends to the second one
    is lost. *bridge*: nothing passes between the first and the last member. *ring*: each member can exchange
    frames with its two neighbours in the list only.
    """

    kind: CutKind
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}:{'-'.join(self.members)}@{self.time}"

    def blocked(self, members: tuple[str, ...], everybody: tuple[str, ...]) -> frozenset[tuple[str, str]]:
        """The directions in which frames are lost; `members` are the members of the cut, by name."""
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


class Inaccessibility(Outage, frozen=True, kw_only=True):
    """The medium of a LAN carries nothing, as a token ring does while it recovers. Frames wait."""

    def __str__(self) -> str:
        return self.time


class NetworkFault(Outage, frozen=True, kw_only=True):
    """A property of a LAN does not hold for a while, in `percent` of the frames with a quality of service.

    *inconsistency* (Pn1): processes receive different frames of one transmission. *corruption* (Pn2): a
    corrupted frame is not noticed. *omissions* (Pn3): more frames are lost than the omission degree allows.
    *half duplex* (Pn4): a process does not receive its own frames. *disorder* (Pn5): frames arrive in another
    order at each process. *delay* (Pn6): frames are in transit for longer than the bound.
    """

    kind: NetworkFaultKind
    percent: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.percent}%@{self.time}"


class Crash(msgspec.Struct, frozen=True, kw_only=True):
    """A process ends and loses everything that it knew; frames that it has sent still arrive.

    With `change_packets` it crashes when it has sent that many packets of a view change after `at_us`;
    without a `member`, the first process that does so crashes. It restarts after `back_after_us`, if that
    is given.
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
    """A process asks the group to let it leave; it may come back later."""

    at_us: int
    member: str
    back_after_us: int | None = None

    def __str__(self) -> str:
        back = "" if self.back_after_us is None else f",back+{self.back_after_us}us"
        return f"{self.member}@{self.at_us}us{back}"


class PlannedOrderChange(msgspec.Struct, frozen=True, kw_only=True):
    """A member asks for another ordering; the protocol stays the same if no `order` is named."""

    at_us: int
    member: str
    prioritised: bool
    starvation: str
    order: str = ""

    def __str__(self) -> str:
        way = f"{'prioritised' if self.prioritised else 'plain'}/{self.starvation}"
        return f"{self.member}@{self.at_us}us:{self.order + ',' if self.order else ''}{way}"


class FaultOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All faults of a run. From `healed_at_us` on there are none.

    A reordered frame takes up to `reordering_us` longer, and later frames may overtake it. With
    `reconnects`, processes are notified that they can reach each other again when a cut heals. A LAN has
    omissions within its omission degree, times of inaccessibility, and faults that break its properties.
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
    omission_percent: int = 0
    inaccessible: tuple[Inaccessibility, ...] = ()
    network: tuple[NetworkFault, ...] = ()
    reconnects: bool = False
    healed_at_us: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.loss_percent <= LOSS_PERCENT_MAX:
            raise InvalidOption(
                f"loss_percent is {self.loss_percent}: it must be between 0 and {LOSS_PERCENT_MAX}"
            )
        for outage in self.outages:
            if outage.until_us > self.healed_at_us:
                raise InvalidOption(
                    f"{outage} ends after healed_at_us ({self.healed_at_us}): it must end before"
                )
        for end in self.ends:
            if end.at_us + (end.back_after_us or 0) > self.healed_at_us:
                raise InvalidOption(
                    f"{end} is not over at healed_at_us ({self.healed_at_us}): it must be back before"
                )

    @property
    def ends(self) -> list[Crash | Leave]:
        """All faults that end an incarnation."""
        return [*self.crashes, *self.leaves]

    @property
    def outages(self) -> list[Pause | Stall | NetworkCut | Inaccessibility | NetworkFault]:
        """All faults that last for a time."""
        return [*self.pauses, *self.stalls, *self.cuts, *self.inaccessible, *self.network]
