"""Quorums: what any two of them have in common."""

from hypothesis import given
from hypothesis import strategies as st

from membership.builders import A, B, C, D
from priocast.core.identity import ProcessId
from priocast.membership.quorum import is_quorum

PROCESSES = [ProcessId(name) for name in "abcdefg"]
views = st.integers(1, 7).map(lambda size: PROCESSES[:size])


def test_more_than_half_or_half_with_the_first() -> None:
    assert is_quorum([A, B, C], [B, C]) and not is_quorum([A, B, C], [A])
    assert is_quorum([A, B], [A]) and not is_quorum([A, B], [B])
    assert is_quorum([A, B, C, D], [A, D]) and not is_quorum([A, B, C, D], [B, C])


def test_another_incarnation_is_not_present() -> None:
    assert not is_quorum([A, B, C], [A, ProcessId("b", 2), ProcessId("c", 2)])


@given(views, st.data())
def test_any_two_quorums_have_a_member_in_common(members: list[ProcessId], data: st.DataObject) -> None:
    one = data.draw(st.sets(st.sampled_from(members)))
    other = data.draw(st.sets(st.sampled_from(members)))
    if is_quorum(members, one) and is_quorum(members, other):
        assert one & other


@given(views, st.data())
def test_at_most_one_of_two_sides_continues(members: list[ProcessId], data: st.DataObject) -> None:
    side = data.draw(st.sets(st.sampled_from(members)))
    sides = is_quorum(members, side), is_quorum(members, set(members) - side)
    assert sides in {(True, False), (False, True)}
    assert is_quorum(members, members)
