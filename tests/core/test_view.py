"""Views: who coordinates, and what cannot be a view."""

import pytest

from core.builders import A, B
from priocast.core.identity import ProcessId
from priocast.core.view import View


def test_the_first_member_coordinates() -> None:
    assert View(1, (B, A)).coordinator == B


def test_a_view_without_members_is_our_own_fault() -> None:
    with pytest.raises(AssertionError, match="has members"):
        View(1, ())


def test_two_lives_of_one_name_cannot_share_a_view() -> None:
    with pytest.raises(AssertionError, match="names are unique"):
        View(1, (ProcessId("a", 1), ProcessId("a", 2)))
