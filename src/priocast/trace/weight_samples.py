"""Samples of the weights by which an adaptive order shares its slots, taken by whoever ran it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class WeightSample(NamedTuple):
    """A sender's share of the slots at a time, beside its share of what all senders send at that time."""

    run: str
    second: float
    distribution: str
    sender: str
    share: float
    true_share: float


def changes_of(samples: Sequence[WeightSample]) -> list[WeightSample]:
    """The samples of one sender at which another distribution began."""
    return [after for before, after in pairwise(samples) if after.distribution != before.distribution]
