"""The growth of a message's cost: lines and exponents are those of the times, and real times are positive."""

from functools import reduce

import pytest
from benchmarks.cost_growth import (
    EXPONENT_MAX,
    LARGE,
    by_load,
    by_members,
    exponent,
    fit_line,
    instructions_by_members,
    members_table,
    size_table,
)
from benchmarks.instructions import instructions_of

from priocast.core.identity import ProcessId
from priocast.protocols import PROTOCOLS

SIZES = (2, 8, 16)


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_exponent_is_that_of_the_times(power: int) -> None:
    assert exponent({size: 7.0 * size**power for size in (8, 16, 32)}) == pytest.approx(power)


def test_small_groups_do_not_count() -> None:
    assert exponent({2: 1_000.0, LARGE: 8.0, 2 * LARGE: 16.0}) == pytest.approx(1)


def test_a_line_is_found() -> None:
    assert fit_line({1: 5.0, 2: 7.0, 3: 9.0}) == pytest.approx((3, 2))


def test_an_order_that_grows_faster_than_linearly_is_marked() -> None:
    row = members_table(["sequencer-ub"], SIZES, lambda _: {8: 8.0, 16: 32.0, 32: 128.0})[-1]
    assert row[-1] == "**2.00**"
    assert EXPONENT_MAX < 2


def test_real_groups_are_measured() -> None:
    times = by_members("sequencer-ub", 1, SIZES, 1)
    assert list(times) == list(SIZES)
    assert all(time > 0 for time in times.values())
    assert all(time > 0 for time in by_load("token-ring", 1).values())
    assert len(size_table(["sequencer-ub"], 1)[-1]) == 6


def test_instructions_are_those_of_the_package() -> None:
    assert instructions_of(lambda: reduce(max, range(100))) == 0
    once = instructions_of(lambda: str(ProcessId("a", 1)))
    assert once > 0
    assert instructions_of(lambda: [str(ProcessId("a", 1)) for _ in range(5)]) == 5 * once


@pytest.mark.parametrize("order", PROTOCOLS)
def test_a_member_executes_at_most_so_many_more_instructions_as_there_are_members(order: str) -> None:
    assert exponent(instructions_by_members(order, (8, 16))) <= 1
