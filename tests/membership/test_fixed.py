"""Fixed membership: complete once all have introduced themselves, the same view everywhere."""

from itertools import permutations

import pytest

from priocast.core.errors import JoinRefused, PeerRestarted
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.fixed import FixedMembership

A, B, C = ProcessId("a"), ProcessId("b", 5), ProcessId("c")


def test_the_view_is_the_same_whoever_introduces_itself_first() -> None:
    for first, second, third in permutations((A, B, C)):
        membership = FixedMembership(first, 3)
        assert (membership.missing, membership.view) == (2, None)
        membership.introduce(second)
        assert (membership.missing, membership.view) == (1, None)
        membership.introduce(third)
        assert (membership.missing, membership.view) == (0, View(1, (A, B, C)))


def test_a_group_of_one_is_complete_at_once() -> None:
    assert FixedMembership(B, 1).view == View(1, (B,))


def test_an_introduction_may_be_repeated() -> None:
    membership = FixedMembership(A, 2)
    membership.introduce(B)
    membership.introduce(B)
    assert membership.view == View(1, (A, B))


def test_one_too_many_is_refused_with_the_names_that_there_are() -> None:
    membership = FixedMembership(A, 2)
    membership.introduce(B)
    with pytest.raises(JoinRefused, match="c#1 is not one of the 2 members of this fixed group: a, b"):
        membership.introduce(C)
    assert membership.view == View(1, (A, B))


@pytest.mark.parametrize("other", [ProcessId("b", 6), ProcessId("a", 2)])
def test_another_process_under_a_known_name_is_refused(other: ProcessId) -> None:
    membership = FixedMembership(A, 3)
    membership.introduce(B)
    with pytest.raises(PeerRestarted, match="restart the whole group"):
        membership.introduce(other)
