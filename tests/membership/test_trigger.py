"""The trigger: when the view must change, and when this member starts a round."""

from typing import Any

import msgspec

from membership.builders import MILLISECOND, ORDERING, A, B, C, D, acquainted, heartbeat, options, view
from priocast.core.identity import ProcessId
from priocast.core.view_reason import Eviction
from priocast.membership.outputs import LeaveAtOnce, MembershipOutput, SendControl, StartRound
from priocast.membership.packets import Ballot, ChangeOrder, Heartbeat
from priocast.membership.target_view import TargetView
from priocast.membership.trigger import ViewChangeTrigger

OLD = view(A, B, C)
BEAT = 20 * MILLISECOND
FAILURE = 100 * MILLISECOND
PLAIN = msgspec.structs.replace(ORDERING, prioritised=False)


def heartbeats(*processes: ProcessId, **more: Any) -> dict[ProcessId, Heartbeat]:
    """What processes say that are in the old view and all hear each other."""
    return {
        process: heartbeat(*(each for each in (A, B, C, D) if each != process), of=OLD.id, **more)
        for process in processes
    }


def trigger(me: ProcessId, others: dict[ProcessId, Heartbeat], **chosen: Any) -> ViewChangeTrigger:
    """The trigger of a member of the old view."""
    neighbours = acquainted(me, others, **chosen)
    found = ViewChangeTrigger(me, options(**chosen), neighbours, ORDERING, may_found=True, now=0)
    found.on_view(OLD, ORDERING, 0)
    return found


def evaluate(found: ViewChangeTrigger, now: int, promised: Ballot | None = None) -> list[MembershipOutput]:
    return found.on_evaluate(promised, 0, now)


def targets(outputs: list[MembershipOutput]) -> list[TargetView]:
    return [output.target for output in outputs if isinstance(output, StartRound)]


def test_a_view_that_is_its_own_target_needs_no_round() -> None:
    found = trigger(A, heartbeats(B, C))
    assert evaluate(found, 0) == evaluate(found, BEAT) == [] and not found.suspended


def test_the_first_voter_starts_a_round_once_the_group_has_settled() -> None:
    found = trigger(A, heartbeats(B))
    assert evaluate(found, 0) == []
    assert targets(evaluate(found, BEAT // 2)) == [TargetView((A, B), (A, B))]


def test_the_target_follows_a_link_that_is_lost_though_all_are_alive() -> None:
    neighbours = acquainted(A, heartbeats(B, C))
    found = ViewChangeTrigger(A, options(), neighbours, ORDERING, may_found=True, now=0)
    found.on_view(OLD, ORDERING, 0)
    assert found.target(0) == TargetView((A, B, C), (A, B, C))
    assert found.target(0) is found.target(1), "nothing has changed, so nothing is computed"
    neighbours.on_heartbeat(C, heartbeat(A, of=OLD.id))
    assert found.target(1) == TargetView((A, B), (A, B))


def test_a_later_voter_waits_longer() -> None:
    found = trigger(B, heartbeats(A))
    assert evaluate(found, 0) == evaluate(found, BEAT) == []
    assert targets(evaluate(found, BEAT // 2 + FAILURE // 2)) == [TargetView((A, B), (A, B))]


def test_what_was_asked_for_needs_no_settling() -> None:
    found = trigger(A, heartbeats(B, C))
    assert found.on_evict(C, "slow", "") and not found.on_evict(C, "slow", ""), "that is no news"
    assert not found.on_evict(D, "slow", ""), "d is not a member"
    (start,) = evaluate(found, 0)
    assert start == StartRound(TargetView((A, B, C), (A, B)), ORDERING, (Eviction("c", "slow"),))


def test_an_eviction_is_dropped_if_nobody_else_has_the_state() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    found = ViewChangeTrigger(A, options(), neighbours, ORDERING, may_found=True, now=0)
    found.on_view(view(A), ORDERING, 0)
    found.on_evict(A, "slow", "")
    assert found.target(0) == TargetView((A, B), (A, B)) and A in found.evictions, "a query changes nothing"
    evaluate(found, 0)
    assert found.evictions == {}


def test_a_member_that_can_be_in_no_view_is_suspended() -> None:
    found = trigger(A, {})
    assert evaluate(found, 0) == [] and found.suspended
    found.on_view(view(A), ORDERING, 1)
    assert not found.suspended


def test_a_member_that_nobody_has_to_agree_with_leaves_at_once() -> None:
    found = trigger(A, heartbeats(B, C, leaving=True))
    found.leaving = True
    assert evaluate(found, 0) == [LeaveAtOnce()]
    others = trigger(A, heartbeats(B, C))
    others.leaving = True
    assert targets(evaluate(others, 0)) == [TargetView((A, B, C), (B, C))]


def test_a_view_change_in_progress_gets_time_to_succeed() -> None:
    found = trigger(A, heartbeats(B, C))
    assert evaluate(found, 0, Ballot(3, B)) == evaluate(found, FAILURE - 1, Ballot(3, B)) == []
    for process in (B, C):
        found._neighbours.detector.heard(process.name, FAILURE - 1)
    assert len(evaluate(found, FAILURE, Ballot(3, B))) == 1


def test_another_order_is_asked_of_the_coordinator_until_it_orders() -> None:
    found = trigger(B, heartbeats(A, C))
    assert found.on_tick() == []
    found.ordering_next = PLAIN
    assert found.on_tick() == found.on_tick() == [SendControl(A, ChangeOrder(OLD.id, PLAIN))]
    found.on_view(view(A, B, C, number=2), PLAIN, 1)
    assert found.on_tick() == [] and found.ordering_next is None


def test_the_coordinator_proposes_the_order_that_a_member_asks_for() -> None:
    found = trigger(A, heartbeats(B, C))
    assert not found.on_change_order(view(B).id, PLAIN), "that is another view"
    assert not found.on_change_order(OLD.id, ORDERING), "that is the order already"
    assert found.on_change_order(OLD.id, PLAIN) and found.on_tick() == []
    (start,) = evaluate(found, 0)
    assert isinstance(start, StartRound) and start.ordering == PLAIN and start.reorders


def test_objections() -> None:
    found = trigger(A, heartbeats(B, C))
    assert found.objection_to(B, (A, B, C), 0) == ""
    assert found.objection_to(D, (A, D), 0) == "d is not a member"
    assert found.objection_to(B, (A, B, D), 0) == "a does not hear d"
    assert found.objection_to(B, (A, B), 0) == "it leaves out c"


def test_founders_object_to_another_number_of_founders() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    found = ViewChangeTrigger(A, options(), neighbours, ORDERING, may_found=True, now=0)
    assert found.objection_to(B, (A, B), 0) == "a expects 3 founders, not 2"
