"""The target view: what one process would propose, as a pure function of its situation."""

from typing import Any

import msgspec
import pytest

from membership.builders import A, B, C, D, E, options, view
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.reachability import Reachability
from priocast.membership.target_view import GroupSituation, Peer, TargetView, TargetViewPlanner

PARTITIONABLE = {"policy": "partitionable"}


Hearing = tuple[Peer, tuple[ProcessId, ...]]


def peer(process: ProcessId, *hears: ProcessId, of: View | None = None, leaving: bool = False) -> Hearing:
    """A process and whom it hears."""
    return Peer(process, of.id if of else None, of.members if of else (), leaving), hears


def everybody(*processes: ProcessId, of: View | None = None) -> list[Hearing]:
    """Processes that all hear each other, and a."""
    return [
        peer(process, A, *(other for other in processes if other != process), of=of) for process in processes
    ]


def situation(
    me: ProcessId,
    peers: list[Hearing],
    of: View | None = None,
    chosen: dict[str, Any] | None = None,
    **more: Any,
) -> GroupSituation:
    reachability = Reachability(me)
    for each, _ in peers:
        reachability.add(each.process)
    for each, hears in peers:
        reachability.update(each.process, hears)
    known = tuple(each for each, _ in peers)
    return GroupSituation(me, options(**(chosen or {})), of, known, reachability, **more)


def target(*given: Any, **more: Any) -> TargetView | None:
    return TargetViewPlanner(situation(*given, **more)).target()


def of_all(*processes: ProcessId) -> TargetView:
    return TargetView(processes, processes)


# Founding


def test_founders_wait_until_they_are_enough() -> None:
    assert target(A, everybody(B)) is None
    assert target(A, everybody(B, C)) == of_all(A, B, C)


def test_only_the_first_processes_found_the_group() -> None:
    assert target(A, everybody(B, C, D)) == of_all(A, B, C)
    others = [peer(process, D, *(each for each in (A, B, C) if each != process)) for process in (A, B, C)]
    assert target(D, others) is None, "the fourth waits to be admitted"


def test_nobody_founds_a_group_that_has_a_view() -> None:
    assert target(A, [*everybody(B, C), peer(D, A, B, C, of=view(D))]) is None


def test_a_process_that_may_not_found_has_no_target() -> None:
    assert target(A, everybody(B, C), may_found=False) is None


@pytest.mark.parametrize("chosen", [{}, PARTITIONABLE])
def test_fewer_processes_than_founders_found_no_group(chosen: dict[str, Any]) -> None:
    assert target(A, everybody(B), chosen=chosen) is None
    assert target(A, [], chosen=chosen) is None
    assert target(A, everybody(B, C), chosen=chosen) == of_all(A, B, C)


# Continuing


def test_a_silent_member_is_excluded() -> None:
    old = view(A, B, C)
    assert target(A, everybody(B, of=old), old) == of_all(A, B)


def test_a_minority_of_a_primary_group_has_no_target() -> None:
    old = view(A, B, C)
    assert target(A, [], old) is None
    assert target(A, [], old, PARTITIONABLE) == of_all(A)


def test_of_two_members_the_first_continues_alone() -> None:
    assert target(A, [], view(A, B)) == of_all(A)
    assert target(B, [], view(A, B)) is None


def test_joining_processes_come_after_the_members() -> None:
    old = view(B, A)
    peers = [peer(B, A, C, D, of=old), peer(C, A, B, D), peer(D, A, B, C)]
    assert target(A, peers, old) == of_all(B, A, C, D)


def test_a_new_incarnation_replaces_the_old_one() -> None:
    old, again = view(A, B, C), ProcessId("c", 2)
    assert target(A, [peer(B, A, again, of=old), peer(again, A, B)], old) == of_all(A, B, again)


def test_a_process_that_leaves_or_is_evicted_votes_but_is_not_a_member() -> None:
    old = view(A, B, C)
    leaving = [peer(B, A, C, of=old, leaving=True), peer(C, A, B, of=old)]
    assert target(A, leaving, old) == TargetView((A, B, C), (A, C))
    peers = everybody(B, C, of=old)
    assert target(A, peers, old, evicted=frozenset({C})) == TargetView((A, B, C), (A, B))


def test_a_member_that_has_the_state_stays() -> None:
    found = target(A, [peer(B, A)], view(A), evicted=frozenset({A}))
    assert found is not None and A in found.members


def test_asking_for_the_target_changes_nothing() -> None:
    given = situation(A, [peer(B, A)], view(A), evicted=frozenset({A}))
    before = msgspec.structs.asdict(given)
    assert TargetViewPlanner(given).target() == TargetViewPlanner(given).target()
    assert msgspec.structs.asdict(given) == before


@pytest.mark.parametrize("chosen", [{}, PARTITIONABLE])
def test_of_a_bridge_one_side_is_chosen(chosen: dict[str, Any]) -> None:
    """A and C hear B, and not each other: a view of all three could not work."""
    old = view(A, B, C)
    peers = [peer(A, B, of=old), peer(C, B, of=old)]
    assert target(B, peers, old, chosen) == of_all(A, B), "the senior one"


# Merging


def test_the_larger_part_comes_first_and_processes_without_a_view_last() -> None:
    mine, theirs = view(A, number=3), view(C, B, number=2)
    peers = [peer(B, A, C, D, of=theirs), peer(C, A, B, D, of=theirs), peer(D, A, B, C)]
    assert target(A, peers, mine, PARTITIONABLE) == of_all(B, C, A, D)


def test_all_agree_on_the_order_of_parts_of_equal_size() -> None:
    one, other = view(A, B, number=3), view(C, D, number=2)
    view_of = {process: part for part in (one, other) for process in part.members}
    peers = {
        process: peer(process, *(each for each in view_of if each != process), of=part)
        for process, part in view_of.items()
    }
    targets = {
        target(me, [each for process, each in peers.items() if process != me], view_of[me], PARTITIONABLE)
        for me in peers
    }
    assert targets in ({of_all(A, B, C, D)}, {of_all(C, D, A, B)})


def test_a_process_with_members_that_we_cannot_reach_is_not_asked_to_merge() -> None:
    mine, theirs = view(A), view(B, E, number=2)
    assert target(A, [peer(B, A, E, of=theirs)], mine, PARTITIONABLE) == of_all(A)
    reachable = [peer(B, A, E, of=theirs), peer(E, A, B, of=theirs)]
    assert target(A, reachable, mine, PARTITIONABLE) == of_all(B, E, A), "all of them can come"


def test_an_avoided_process_is_left_out() -> None:
    old = view(A, B, C)
    peers = everybody(B, C, of=old)
    assert target(A, peers, old, PARTITIONABLE, avoided=frozenset({C})) == of_all(A, B)
    assert target(A, peers, old, PARTITIONABLE) == of_all(A, B, C)
