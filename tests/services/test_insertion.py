"""Insertion points: the order is total, and there is a point between any two."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from priocast.services.insertion import Point, common_point, is_point, point_between, point_of_unit

_NUMBERS = st.integers(0, 3)
POINTS = st.builds(
    lambda first, middle, last: (first, *middle, last) if middle or last else (first,),
    st.integers(1, 4),
    st.lists(_NUMBERS, max_size=3),
    st.integers(1, 3),
) | st.tuples(st.integers(1, 4))


@given(POINTS, POINTS)
def test_between_any_two_points_there_is_one(one: Point, other: Point) -> None:
    lowest, before = min(one, other), max(one, other)
    if lowest < before:
        found = point_between(lowest, before)
        assert lowest < found < before
        assert is_point(found)


@given(POINTS, st.lists(st.booleans(), max_size=40))
def test_points_can_be_inserted_again_and_again(lowest: Point, after: list[bool]) -> None:
    before = point_between(lowest, ())
    for is_after in after:
        found = point_between(lowest, before)
        assert lowest < found < before
        lowest, before = (found, before) if is_after else (lowest, found)


def test_a_point_that_would_be_too_long_is_behind_all_others() -> None:
    lowest: Point = (4,)
    before: Point = (4, *[0] * 58, 1)
    assert point_between(lowest, before) == (5,)


@given(POINTS)
def test_without_a_next_message_the_point_is_the_next_number(lowest: Point) -> None:
    assert point_between(lowest, ()) == (lowest[0] + 1,)


@given(st.lists(st.tuples(POINTS, POINTS | st.just(())), min_size=1, max_size=5))
def test_the_common_point_is_after_all_proposals(proposals: list[tuple[Point, Point]]) -> None:
    found = common_point(proposals)
    assert all(found > lowest for lowest, _ in proposals)
    assert found == common_point(reversed(proposals))


def test_the_common_point_is_before_the_next_message_of_all() -> None:
    assert (3,) < common_point([((2,), (5,)), ((3,), (3, 1))]) < (3, 1)


def test_in_network_order_there_are_no_points() -> None:
    assert common_point([((), ()), ((), ())]) == ()


@given(POINTS, st.integers(2, 5))
def test_there_is_room_between_units(point: Point, count: int) -> None:
    units = [point_of_unit(point, index, count) for index in range(count)]
    assert point < units[0]
    for one, other in pairwise(units):
        assert one < point_between(one, other) < other


def test_one_unit_has_the_point_of_its_message() -> None:
    assert point_of_unit((4,), 0, 1) == (4,)
