"""TargetViewPlanner: what the next view should be, as one process sees it."""

from typing import Any

import pytest

from membership.builders import MILLISECOND, A, B, C, D, E, acquainted, alive, options, view
from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.membership.packets import Heartbeat
from priocast.membership.target_view import TargetView, TargetViewPlanner

PARTITIONABLE = {"policy": "partitionable"}


def wishes(me: ProcessId, others: dict[ProcessId, Heartbeat], **chosen: Any) -> TargetViewPlanner:
    return TargetViewPlanner(me, options(**chosen), acquainted(me, others, **chosen))


def everybody(*processes: ProcessId, of: View | None = None) -> dict[ProcessId, Heartbeat]:
    """What processes say that all hear each other, and us."""
    members = of.members if of else ()
    return {
        process: alive(A, *(other for other in processes if other != process), of=_id(of), members=members)
        for process in processes
    }


def _id(of: View | None) -> ViewId | None:
    return of.id if of else None


def of_all(*processes: ProcessId) -> TargetView:
    return TargetView(processes, processes)


# To begin


def test_founders_wait_until_they_are_enough() -> None:
    assert wishes(A, everybody(B)).form(None, 0, 0) is None
    assert wishes(A, everybody(B, C)).form(None, 0, 0) == of_all(A, B, C)


def test_only_the_first_found_a_group_of_that_size() -> None:
    assert wishes(A, everybody(B, C, D)).form(None, 0, 0) == of_all(A, B, C)
    last = {process: alive(D, *(each for each in (A, B, C) if each != process)) for process in (A, B, C)}
    assert wishes(D, last).form(None, 0, 0) is None, "the fourth waits to be taken in"


def test_where_there_is_a_view_nobody_founds_another() -> None:
    there = everybody(B, C) | {D: alive(A, B, C, of=view(D).id)}
    assert wishes(A, there).form(None, 0, 0) is None


def test_who_has_heard_of_a_view_does_not_found_one_in_a_primary_group() -> None:
    wanting = wishes(A, everybody(B, C))
    wanting.may_found = False
    assert wanting.form(None, 0, 0) is None


def test_impatient_founders_begin_with_fewer_only_in_a_partitionable_group() -> None:
    long = 1_000 * MILLISECOND
    assert wishes(A, everybody(B)).form(None, long, 0) is None
    assert wishes(A, everybody(B), **PARTITIONABLE).form(None, long, 0) == of_all(A, B)
    assert wishes(A, {}, **PARTITIONABLE).form(None, 0, 0) is None


# To go on


def test_who_is_silent_is_left_out() -> None:
    old = view(A, B, C)
    assert wishes(A, everybody(B, of=old)).form(old, 0, 0) == of_all(A, B)


def test_a_minority_of_a_primary_group_wishes_for_nothing() -> None:
    old = view(A, B, C)
    assert wishes(A, {}).form(old, 0, 0) is None
    assert wishes(A, {}, **PARTITIONABLE).form(old, 0, 0) == of_all(A)


def test_of_two_the_first_goes_on_alone() -> None:
    assert wishes(A, {}).form(view(A, B), 0, 0) == of_all(A)
    assert wishes(B, {}).form(view(A, B), 0, 0) is None


def test_who_comes_is_taken_in_after_those_who_are_there() -> None:
    old = view(B, A)
    there = everybody(B, of=old) | {C: alive(A, B), D: alive(A, B, C)}
    there[B] = alive(A, C, D, of=old.id)
    there[C] = alive(A, B, D)
    assert wishes(A, there).form(old, 0, 0) == of_all(B, A, C, D)


def test_a_new_life_is_taken_in_for_the_old_one() -> None:
    old, again = view(A, B, C), ProcessId("c", 2)
    there = {B: alive(A, again, of=old.id), again: alive(A, B)}
    assert wishes(A, there).form(old, 0, 0) == of_all(A, B, again)


def test_who_leaves_or_is_put_out_votes_but_is_not_in_the_view() -> None:
    old = view(A, B, C)
    there = everybody(B, C, of=old)
    there[B] = alive(A, C, of=old.id, leaving=True)
    assert wishes(A, there).form(old, 0, 0) == TargetView((A, B, C), (A, C))
    wanting = wishes(A, everybody(B, C, of=old))
    wanting.evicted[C] = "was too slow"
    assert wanting.form(old, 0, 0) == TargetView((A, B, C), (A, B))
    assert wanting.goes(C) and not wanting.goes(B)


def test_somebody_who_has_the_state_stays() -> None:
    old = view(A)
    wanting = wishes(A, {B: alive(A)})
    wanting.evicted[A] = "was too slow"
    wish = wanting.form(old, 0, 0)
    assert wish is not None and A in wish.members


@pytest.mark.parametrize("chosen", [{}, PARTITIONABLE])
def test_of_a_bridge_one_side_is_chosen(chosen: dict[str, Any]) -> None:
    """A and C hear B, and not each other: a view of all three could not work."""
    old = view(A, B, C)
    there = {A: alive(B, of=old.id), C: alive(B, of=old.id)}
    assert wishes(B, there, **chosen).form(old, 0, 0) == of_all(A, B), "the senior one"


# To merge


def test_the_larger_part_comes_first_and_strangers_last() -> None:
    mine, theirs = view(A, number=3), view(C, B, number=2)
    there = everybody(B, C, of=theirs) | {D: alive(A, B, C)}
    there[B] = alive(A, C, D, of=theirs.id, members=theirs.members)
    there[C] = alive(A, B, D, of=theirs.id, members=theirs.members)
    wish = wishes(A, there, **PARTITIONABLE).form(mine, 0, 0)
    assert wish == of_all(B, C, A, D)


def test_of_parts_that_are_alike_all_agree_who_is_first() -> None:
    one, other = view(A, B, number=3), view(C, D, number=2)
    hear_all = {process: tuple(each for each in (A, B, C, D) if each != process) for process in (A, B, C, D)}
    said = {
        process: alive(*hear_all[process], of=part.id, members=part.members)
        for part in (one, other)
        for process in part.members
    }
    seen = {
        me: wishes(
            me, {process: each for process, each in said.items() if process != me}, **PARTITIONABLE
        ).form(one if me in one.members else other, 0, 0)
        for me in (A, B, C, D)
    }
    assert set(seen.values()) == {of_all(A, B, C, D)} or set(seen.values()) == {of_all(C, D, A, B)}


def test_who_is_bound_to_others_is_not_asked_to_merge() -> None:
    mine, theirs = view(A), view(B, E, number=2)
    there = {B: alive(A, E, of=theirs.id, members=theirs.members)}
    assert wishes(A, there, **PARTITIONABLE).form(mine, 0, 0) == of_all(A)


def test_who_is_avoided_is_left_alone() -> None:
    old = view(A, B, C)
    wanting = wishes(A, everybody(B, C, of=old), **PARTITIONABLE)
    wanting._neighbours.avoid(C, until=5)
    assert wanting.form(old, 0, 4) == of_all(A, B)
    assert wanting.form(old, 0, 5) == of_all(A, B, C)
