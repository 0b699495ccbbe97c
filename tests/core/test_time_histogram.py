"""The histogram of durations: its bounds, and the coarser counts that metrics take from it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.time_histogram import BOUNDS_NS, TimeHistogram

MILLISECOND = 1_000_000
COARSE = (MILLISECOND, 5 * MILLISECOND, 25 * MILLISECOND, 1000 * MILLISECOND)


def test_bounds_ascend_by_at_most_a_quarter_or_so_and_contain_round_numbers() -> None:
    assert all(low < high <= low * 1.29 for low, high in pairwise(BOUNDS_NS))
    for decade in (10_000, 1_000_000, 1_000_000_000):
        assert {decade, 2 * decade, decade * 5 // 2, 5 * decade} <= set(BOUNDS_NS)


@given(st.lists(st.tuples(st.integers(0, 3 * BOUNDS_NS[-1]), st.integers(1, 5))))
def test_counts_up_to_a_bound_are_exact(durations: list[tuple[int, int]]) -> None:
    histogram = TimeHistogram()
    for duration, count in durations:
        histogram.add(duration, count)
    expected = [sum(count for each, count in durations if each <= bound) for bound in COARSE]
    assert histogram.counts_up_to(COARSE) == expected
    assert histogram.count == sum(count for _, count in durations)
    assert histogram.total_ns == sum(each * count for each, count in durations)


def test_a_bound_that_is_not_one_of_ours_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        TimeHistogram().counts_up_to((MILLISECOND + 1,))
