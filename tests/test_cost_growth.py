"""The growth of a message's cost: lines and exponents are those of the times, and real times are positive."""

import pytest
from benchmarks.cost_growth import (
    EXPONENT_MAX,
    LARGE,
    by_load,
    by_members,
    exponent,
    fit_line,
    members_table,
    size_table,
)

SIZES = (2, 8, 16)


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_exponent_is_that_of_the_times(power: int) -> None:
    assert exponent({size: 7.0 * size**power for size in (8, 16, 32)}) == pytest.approx(power)


def test_small_groups_do_not_count() -> None:
    assert exponent({2: 1_000.0, LARGE: 8.0, 2 * LARGE: 16.0}) == pytest.approx(1)


def test_a_line_is_found() -> None:
    assert fit_line({1: 5.0, 2: 7.0, 3: 9.0}) == pytest.approx((3, 2))


def test_an_order_that_grows_faster_than_linearly_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.cost_growth.by_members", lambda *_: {8: 8.0, 16: 32.0, 32: 128.0})
    row = members_table(["sequencer-ub"], 1, SIZES, 1)[-1]
    assert row[-1] == "**2.00**"
    assert EXPONENT_MAX < 2


def test_real_groups_are_measured() -> None:
    times = by_members("sequencer-ub", 1, SIZES, 1)
    assert list(times) == list(SIZES)
    assert all(time > 0 for time in times.values())
    assert all(time > 0 for time in by_load("token-ring", 1).values())
    assert len(size_table(["sequencer-ub"], 1)[-1]) == 6
