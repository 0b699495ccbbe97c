"""A member that goes stays until the others know of the view without it."""

import pytest

from support.stacks import founded


def test_a_decision_that_is_lost_is_said_again_by_the_one_that_goes() -> None:
    group = founded("ab")
    leaver, stayer = group.members["a"], group.members["b"]
    leaver.leave(group.now)
    group.run_until(lambda: stayer.membership.voter.accepted is not None)
    group.lost = {("a", "b")}
    group.run(30)
    assert stayer.view is not None
    assert len(stayer.view.members) == 2, "b alone cannot decide: it is half of the view without the first"
    group.lost = set()
    group.wait_view("b", of="b")
    group.run_until(lambda: leaver.departed)


def test_who_goes_does_not_wait_for_ever_for_others_who_are_gone() -> None:
    group = founded("abc")
    leaver = group.members["a"]
    leaver.leave(group.now)
    group.run_until(lambda: group.members["b"].membership.voter.accepted is not None)
    group.cut("a", "bc")
    group.run_until(lambda: leaver.departed, 10_000)


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_who_leaves_last_does_not_wait_for_a_failure_of_those_who_were_quicker(names: str) -> None:
    """Who sees that all leave goes at once, and had not told the others that it leaves, too."""
    group = founded(names, failure_ms=60_000.0, slow_ms=60_000.0)
    for name in names:
        group.members[name].leave(group.now)
        group.run(1)
    group.run_until(lambda: all(member.departed for member in group.members.values()))
