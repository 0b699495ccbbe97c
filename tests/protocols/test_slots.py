"""The generator of slots: every member owns its share, spread evenly, the same on every machine."""

from math import gcd

from hypothesis import given
from hypothesis import strategies as st

from priocast.protocols.adaptive.slots import (
    CYCLE_MAX,
    DEFAULT_ID,
    WEIGHT_MAX,
    Distribution,
    default_distribution,
    owners,
    scaled,
)

WEIGHTS = st.lists(st.integers(1, WEIGHT_MAX), min_size=1, max_size=8).map(tuple)


def test_known_cycles() -> None:
    """Pinned: a member of another version that computed others would order differently."""
    assert owners((4, 2, 1)) == [0, 1, 0, 2, 0, 1, 0]
    assert owners((2, 2, 4, 1)) == [2, 0, 1, 2, 3, 2, 0, 1, 2]
    assert owners((1, 1, 1)) == [0, 1, 2]
    assert owners((3, 5)) == [1, 0, 1, 0, 1, 1, 0, 1]


@given(WEIGHTS)
def test_every_member_owns_its_share_spread_evenly(weights: tuple[int, ...]) -> None:
    cycle = owners(weights)
    assert [cycle.count(rank) for rank in range(len(weights))] == list(weights)
    for rank, weight in enumerate(weights):
        slots = [slot for slot, owner in enumerate(cycle) if owner == rank]
        for turn, slot in enumerate(slots):
            assert abs(slot - (2 * turn + 1) * len(cycle) / (2 * weight)) <= len(weights), "near its due time"


@given(WEIGHTS, st.integers(0, 10_000))
def test_turns_and_slots_are_inverse(weights: tuple[int, ...], slot: int) -> None:
    distribution, cycle = Distribution(DEFAULT_ID, weights), owners(weights)
    owner = cycle[slot % len(cycle)]
    for rank in range(len(weights)):
        turns = distribution.turns_before(rank, slot)
        assert distribution.slot(rank, turns) >= slot
        assert turns == 0 or distribution.slot(rank, turns - 1) < slot
        assert (distribution.slot(rank, turns) == slot) == (rank == owner)


def test_the_default_gives_each_member_one_slot_in_turn() -> None:
    distribution = default_distribution(3)
    assert [distribution.slot(rank, 0) for rank in range(3)] == [0, 1, 2]
    assert distribution.slot(1, 5) == 16


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=256))
def test_scaled_weights_are_valid_and_in_proportion(counts: list[int]) -> None:
    weights = scaled(counts)
    assert all(1 <= weight <= WEIGHT_MAX for weight in weights)
    assert sum(weights) <= CYCLE_MAX
    assert gcd(*weights) == 1
    assert scaled(weights) == weights
    assert max(counts) == 0 or weights[counts.index(max(counts))] == max(weights)


def test_scaled_examples() -> None:
    assert scaled([10, 10, 20, 0, 0]) == (32, 32, 64, 1, 1)
    assert scaled([7, 7, 7]) == (1, 1, 1)
    assert scaled([0, 0]) == (1, 1)
    assert scaled([1_000_000, 1]) == (64, 1)
