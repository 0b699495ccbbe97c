"""Departure: a leaving member stays until the others know the view without it."""

import pytest

from membership.builders import ORDERING, REASON, A, B, C, D, view
from priocast.core.view import View
from priocast.membership.departure import departing
from priocast.membership.packets import FlushPlan, Proposal
from support.stacks import MILLISECOND, founded

FAILURE_NS = 100 * MILLISECOND
"""The failure timeout of these groups."""


def test_who_departs_with_a_view() -> None:
    """A member on another side of a partition departs in a primary group only."""
    old = view(A, B, C, D)
    plan = FlushPlan(old.id, (A, B, C), (0,) * 4, (0,) * 4, ())
    proposal = Proposal(View(2, (A, B)), (plan,), ORDERING, REASON)
    assert departing(old, proposal, primary=True) == [C, D]
    assert departing(old, proposal, primary=False) == [C]
    assert departing(view(C, D), proposal, primary=False) == [C, D]
    assert departing(None, proposal, primary=True) == []


def test_a_leaving_member_repeats_a_lost_decision() -> None:
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
    known_at = group.now
    group.run_until(lambda: leaver.departed)
    assert group.now - known_at < FAILURE_NS, "as soon as b says that it knows the view"


@pytest.mark.parametrize("decided", [False, True])
def test_a_leaving_member_does_not_wait_for_ever_for_unreachable_ones(decided: bool) -> None:
    group = founded("abc")
    leaver, stayer = group.members["a"].membership, group.members["b"].membership
    group.members["a"].leave(group.now)
    group.run_until(lambda: leaver._departure if decided else stayer.voter.accepted)
    group.cut("a", "bc")
    cut_at = group.now
    group.run_until(lambda: leaver.departed, 10_000)
    assert group.now - cut_at < 4 * FAILURE_NS, "not longer than until they count as failed"
    assert leaver.departed is not None
    assert (leaver.departed.voluntary, str(leaver.departed.reason)) == (True, "a left")
    group.wait_view("bc")
    assert group.applications["b"].reasons[-1] == "a left", "what was accepted with a's vote is not replaced"


def test_a_leaving_member_does_not_wait_for_ever_for_one_that_it_hears() -> None:
    group = founded("ab")
    leaver = group.members["a"]
    leaver.leave(group.now)
    group.run_until(lambda: group.members["b"].membership.voter.accepted is not None)
    group.lost = {("a", "b")}
    group.run(300)
    assert leaver.departed is None, "b is heard, and does not know the view without a"
    group.run_until(lambda: leaver.departed)
    assert leaver.departed is not None and leaver.departed.voluntary
    assert group.views()["b"] == "ab", "b alone cannot decide"


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_the_last_member_that_leaves_does_not_wait_for_a_failure_timeout(names: str) -> None:
    """A member that sees that all leave departs at once; the others must know that it leaves as well."""
    group = founded(names, failure_ms=60_000.0, slow_ms=60_000.0)
    begun = group.now
    for name in names:
        group.members[name].leave(group.now)
        group.run(1)
    group.run_until(lambda: all(member.departed for member in group.members.values()))
    assert all(member.departed and member.departed.voluntary for member in group.members.values())
    assert group.now - begun < 1_000 * MILLISECOND, "virtual time: a small part of the failure timeout"
