"""Priorities: the range, the named levels, the classes and their reserves."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import levels
from priocast.core.errors import PriorityOutOfRange
from priocast.core.priority import (
    CLASS_COUNT,
    HIGHEST,
    LOWEST,
    NAMED_LEVELS,
    check_priority,
    class_of,
    limits_by_class,
    parse_priority,
)


@given(levels)
def test_every_integer_of_the_range_is_a_priority(priority: int) -> None:
    assert check_priority(priority) == priority
    assert parse_priority(str(priority)) == priority


@pytest.mark.parametrize("wrong", [-1, 256, True, False, 1.0, "7", None])
def test_nothing_else_is_a_priority(wrong: Any) -> None:
    with pytest.raises(PriorityOutOfRange, match="named levels: lowest=0"):
        check_priority(wrong)


@pytest.mark.parametrize("typed", ["256", "-1", "1.5", "", "important"])
def test_an_unknown_name_is_rejected_with_the_choices(typed: str) -> None:
    with pytest.raises(PriorityOutOfRange, match="nor one of lowest, background, routine"):
        parse_priority(typed)


def test_named_levels_rise_from_lowest_to_highest_and_can_be_parsed() -> None:
    assert list(NAMED_LEVELS.values()) == sorted(NAMED_LEVELS.values())
    assert (NAMED_LEVELS["lowest"], NAMED_LEVELS["highest"]) == (LOWEST, HIGHEST)
    for name, level in NAMED_LEVELS.items():
        assert parse_priority(f" {name.upper()} ") == level


def test_the_four_ordinary_levels_are_one_in_each_class() -> None:
    ordinary = ("background", "routine", "elevated", "urgent")
    assert [class_of(NAMED_LEVELS[name]) for name in ordinary] == [0, 1, 2, 3]


@given(levels, levels)
def test_a_more_urgent_priority_is_never_of_a_lower_class(one: int, other: int) -> None:
    assert 0 <= class_of(one) < CLASS_COUNT
    assert (class_of(one) <= class_of(other)) or one > other


@given(st.integers(1, 10**9))
def test_each_class_leaves_a_sixteenth_to_every_class_above_it(limit: int) -> None:
    limits = limits_by_class(limit)
    assert limits[-1] == limit
    assert [above - below for below, above in pairwise(limits)] == [limit // 16] * 3
    assert limits[0] > 0


@given(st.integers(1, 10**9))
def test_a_plain_group_reserves_nothing(limit: int) -> None:
    assert set(limits_by_class(limit, reserved=False)) == {limit}
