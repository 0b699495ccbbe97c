"""Slots: which member owns which place of the order, as a function of the members' weights alone.

A *distribution* gives each member of a view a weight. The slots of a distribution repeat in cycles of as many
slots as all weights add up to; in each cycle a member owns as many slots as its weight says. The generator
spreads them evenly: the j-th of w slots is due at the time (2j + 1) / 2w of the cycle, and of slots that are
due at the same time that of the first member comes first. It compares whole numbers only, so all members
compute the same slots, on every machine.

    weights a=4, b=2, c=1    slots  a b a c a b a, and again from the start

A member's slots are numbered from 0 on: they are its *turns*. A turn has one slot, whatever others do: that
is why members need not agree on anything else to agree on the order.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import gcd, lcm
from typing import Annotated

import msgspec

from priocast.core.stamp import DistributionId
from priocast.core.view_reason import MEMBERS_MAX

WEIGHT_MAX = 64
CYCLE_MAX = 4096

Weight = Annotated[int, msgspec.Meta(ge=1, le=WEIGHT_MAX)]
Weights = Annotated[tuple[Weight, ...], msgspec.Meta(max_length=MEMBERS_MAX)]

DEFAULT_ID = DistributionId(0, 0)


class Distribution:
    """The slots of a view's members, by rank, under one distribution of weights."""

    def __init__(self, id_: DistributionId, weights: tuple[int, ...]) -> None:
        assert min(weights) >= 1
        self.id = id_
        self.weights = weights
        self.cycle = sum(weights)
        self._slots: list[list[int]] = [[] for _ in weights]
        for slot, rank in enumerate(owners(weights)):
            self._slots[rank].append(slot)

    def slot(self, rank: int, turn: int) -> int:
        """The slot of a member's turn."""
        cycles, index = divmod(turn, self.weights[rank])
        return cycles * self.cycle + self._slots[rank][index]

    def turns_before(self, rank: int, slot: int) -> int:
        """How many turns a member has before this slot: the number of its first turn that is not before."""
        cycles, rest = divmod(slot, self.cycle)
        return cycles * self.weights[rank] + bisect_left(self._slots[rank], rest)


def default_distribution(size: int) -> Distribution:
    """What every view begins with: one slot for each member in turn."""
    return Distribution(DEFAULT_ID, (1,) * size)


def owners(weights: Sequence[int]) -> list[int]:
    """The ranks of the members that own the slots of one cycle, in the order of the slots."""
    unit = lcm(*weights)
    due = [
        ((2 * turn + 1) * (unit // weight), rank)
        for rank, weight in enumerate(weights)
        for turn in range(weight)
    ]
    return [rank for _, rank in sorted(due)]


def scaled(counts: Sequence[int]) -> tuple[int, ...]:
    """Weights in proportion to what was counted of each member: at least 1, and of a bounded sum."""
    highest = max(1, *counts)
    most = min(WEIGHT_MAX, CYCLE_MAX // len(counts))
    weights = [max(1, (2 * most * count + highest) // (2 * highest)) for count in counts]
    divisor = gcd(*weights)
    return tuple(weight // divisor for weight in weights)
