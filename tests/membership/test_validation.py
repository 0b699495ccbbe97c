"""What must hold of a datagram before a member acts on it: each row breaks one requirement."""

from typing import Any

import msgspec
import pytest

from membership.builders import A, B, C, D, E, epoch, hear, heartbeat, options, view
from priocast.core.errors import FarAhead, InvalidInput, PeerFault
from priocast.core.identity import NUMBER_MAX, STEP_MAX, ProcessId
from priocast.core.view import Part, View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.neighbours import Neighbours
from priocast.membership.packets import (
    Accepted,
    Ballot,
    ChangeOrder,
    Control,
    Declined,
    EvictionNotice,
    FlushPlan,
    FlushReply,
    FlushRequest,
    Heartbeat,
    Install,
    LaterIncarnation,
    OrderDigest,
    Ordering,
    Prepare,
    Promise,
    Proposal,
    Propose,
    SenderDigest,
    StabilityReport,
    StateChunk,
)
from priocast.membership.validation import DatagramValidator

VIEW = view(A, B, C)
EARLIER, OTHER = ViewId(0, A), ViewId(7, D)
FAR = STEP_MAX + 100
ORDERING = Ordering("known", True, "none")
UNKNOWN = Ordering("unknown", True, "none")
MINE, THEIRS = Ballot(3, A), Ballot(3, B)
PLAN = FlushPlan(VIEW.id, (A, B), (0, 2, 5), (0, 1, 1), ())
NEXT = View(2, (A, B, D), (Part(VIEW.id, (A, B)), Part(None, (D,))))
PROPOSAL = Proposal(NEXT, (PLAN,), ORDERING, ViewReason())
HEARTBEAT = Heartbeat(1, VIEW.id, VIEW.members, 0, (A, C), (0, 2, 5))
PROMISE = Promise(MINE, VIEW, (0, 2, 5), (), None, None)
TWICE = OrderDigest(0, {}, (SenderDigest(A, {}), SenderDigest(ProcessId("a", 2), {})))
NOTICE = EvictionNotice(A, ViewId(2, B), ViewReason())
INVALID = ProcessId("a b")


def check_ordering(ordering: Ordering) -> None:
    if ordering.order != "known":
        raise InvalidInput("there is no such order")


def validator(primary: bool = True, in_view: bool = True) -> DatagramValidator:
    validating = DatagramValidator(A, primary, Neighbours(A, options()), check_ordering)
    validating.epoch = epoch(A, VIEW) if in_view else None
    return validating


def changed(control: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(control, **changes)


def proposing(**changes: Any) -> Propose:
    return Propose(THEIRS, changed(PROPOSAL, **changes))


def planning(**changes: Any) -> Propose:
    return proposing(flush_plans=(changed(PLAN, **changes),))


GOOD: list[Control] = [
    HEARTBEAT,
    Heartbeat(1, None, (), STEP_MAX, (A, D, E), ()),
    Heartbeat(1, OTHER, (D, B), 5, (), (9, 9)),
    StabilityReport(VIEW.id, (0, 2, 5)),
    StabilityReport(OTHER, (1,)),
    Prepare(THEIRS, (A, B)),
    PROMISE,
    Promise(Ballot(3, ProcessId("a", 9)), None, (), (), THEIRS, PROPOSAL),
    Declined(MINE, THEIRS, "no"),
    Propose(THEIRS, PROPOSAL),
    Accepted(MINE, OrderDigest(5)),
    Install(PROPOSAL, OrderDigest(5)),
    FlushRequest(VIEW.id, C, 1, 4),
    FlushReply(VIEW.id, C, 1, (b"x",)),
    NOTICE,
    LaterIncarnation(ProcessId("a", 9)),
    ChangeOrder(VIEW.id, ORDERING),
    StateChunk(5, bytes(16), 10, 4, b"012345"),
]

BAD: list[tuple[Control, str]] = [
    (changed(HEARTBEAT, round=FAR), "the round is far ahead"),
    (changed(HEARTBEAT, hears=(C, C)), "the processes that it hears are not distinct"),
    (changed(HEARTBEAT, hears=(INVALID,)), "the processes that it hears are not distinct"),
    (changed(HEARTBEAT, received=(0, 2)), "the counts are not those of the members"),
    (changed(HEARTBEAT, view=None), "there are members without a view"),
    (changed(HEARTBEAT, view=ViewId(FAR, A)), "the view is far ahead"),
    (changed(HEARTBEAT, members=(A, B, ProcessId("b", 2))), "the members are not distinct"),
    (changed(HEARTBEAT, members=(A, C, D)), "the members are not those of its view"),
    (changed(HEARTBEAT, members=(B, A, C)), "the members are not those of its view"),
    (changed(HEARTBEAT, members=(A, B, D)), "the members are not those of this view"),
    (changed(HEARTBEAT, received=(1, 2, 5)), "it has received what was never sent"),
    (StabilityReport(VIEW.id, (0, 2)), "the counts are not those of the members"),
    (StabilityReport(VIEW.id, (1, 2, 5)), "it has received what was never sent"),
    (Prepare(MINE, (A, B)), "the ballot is another's"),
    (Prepare(Ballot(FAR, B), (A, B)), "the round is far ahead"),
    (Prepare(THEIRS, (A, C)), "the proposer does not vote"),
    (Prepare(THEIRS, (A, B, B)), "the voters are not distinct"),
    (changed(PROMISE, ballot=THEIRS), "the ballot is another's"),
    (changed(PROMISE, accepted=PROPOSAL), "a proposal has no ballot"),
    (
        changed(PROMISE, accepted=changed(PROPOSAL, view=VIEW), accepted_in=MINE),
        "the proposal is inconsistent",
    ),
    (changed(PROMISE, received=(0, 2)), "the counts are not those of the members"),
    (changed(PROMISE, acknowledged=((0,) * 3,) * 3), "the acknowledgements are not those of the members"),
    (changed(PROMISE, view=None, received=(), acknowledged=((0,),)), "the acknowledgements are not those"),
    (changed(PROMISE, accepted=changed(PROPOSAL, ordering=UNKNOWN), accepted_in=MINE), "does not exist"),
    (changed(PROMISE, view=view(A, B, C, number=FAR)), "the view is far ahead"),
    (changed(PROMISE, view=view(A, C, D)), "the sender is not in its view"),
    (changed(PROMISE, view=view(A, B, D)), "the view is another one"),
    (changed(PROMISE, received=(1, 2, 5)), "it has received what was never sent"),
    (Declined(THEIRS, THEIRS, ""), "the ballot is another's"),
    (Declined(MINE, Ballot(FAR, C), ""), "the round is far ahead"),
    (Propose(MINE, PROPOSAL), "the ballot is another's"),
    (proposing(view=changed(NEXT, number=FAR)), "the view is far ahead"),
    (proposing(view=changed(NEXT, number=3)), "a view is skipped"),
    (proposing(view=changed(NEXT, number=1)), "the view is an earlier one"),
    (proposing(view=changed(NEXT, parts=())), "the proposal is inconsistent"),
    (proposing(view=View(2, (A, C), (Part(VIEW.id, (A, C)),))), "the proposal is inconsistent"),
    (proposing(view=View(2, (INVALID,), (Part(None, (INVALID,)),))), "the proposal is inconsistent"),
    (proposing(flush_plans=(PLAN, PLAN)), "the proposal is inconsistent"),
    (proposing(flush_plans=()), "the proposal is inconsistent"),
    (proposing(ordering=UNKNOWN), "the order does not exist"),
    (planning(members=(A, B, B)), "the proposal is inconsistent"),
    (planning(holders=(0, 1)), "the proposal is inconsistent"),
    (planning(holders=(0, 1, 2)), "the proposal is inconsistent"),
    (planning(acknowledged=((0,),)), "the proposal is inconsistent"),
    (planning(counts=(0, 2), holders=(0, 1)), "the flush plan has 2 counts for 3 members"),
    (planning(members=(A, B, E)), "the flush plan has members of another view"),
    (planning(counts=(1, 2, 5)), "the flush plan counts what was never sent"),
    (
        Propose(
            THEIRS,
            Proposal(
                View(2, (C,), (Part(VIEW.id, (C,)),)),
                (changed(PLAN, members=(C,), holders=(0,) * 3),),
                ORDERING,
                ViewReason(),
            ),
        ),
        "the flush plan has no quorum",
    ),
    (Accepted(THEIRS, OrderDigest(5)), "the ballot is another's"),
    (Accepted(MINE, TWICE), "a process has two digests"),
    (Accepted(MINE, OrderDigest(FAR)), "the position is far ahead"),
    (Install(PROPOSAL, OrderDigest(FAR)), "the position is far ahead"),
    (Install(changed(PROPOSAL, ordering=UNKNOWN), OrderDigest(0)), "the order does not exist"),
    (Install(PROPOSAL, TWICE), "a process has two digests"),
    (FlushRequest(VIEW.id, C, 0, 4), "no packets are requested"),
    (FlushRequest(VIEW.id, C, 5, 4), "no packets are requested"),
    (FlushReply(VIEW.id, C, 1, ()), "there are no packets"),
    (FlushReply(VIEW.id, D, 1, (b"x",)), "a process is not in the view"),
    (changed(NOTICE, process=B), "the sender is the evicted process"),
    (changed(NOTICE, view=EARLIER), "the view is an earlier one"),
    (LaterIncarnation(ProcessId("a", NUMBER_MAX)), "the incarnation uses up the numbers"),
    (ChangeOrder(VIEW.id, UNKNOWN), "the order does not exist"),
    (StateChunk(5, bytes(16), 10, 5, b"012345"), "the chunk is longer than the state"),
]


@pytest.mark.parametrize("control", GOOD, ids=lambda control: type(control).__name__)
def test_what_members_send_is_accepted(control: Control) -> None:
    validator().check(B, control, 0)


@pytest.mark.parametrize(("control", "requirement"), BAD)
def test_what_does_not_hold_is_the_senders_fault(control: Control, requirement: str) -> None:
    with pytest.raises(PeerFault, match=f"b#1 sent a .* in which .*{requirement}"):
        validator().check(B, control, 0)


@pytest.mark.parametrize(
    "control",
    [StabilityReport(VIEW.id, (0, 2, 5)), ChangeOrder(VIEW.id, ORDERING), FlushReply(VIEW.id, C, 1, (b"x",))],
)
def test_what_only_members_of_the_view_may_say(control: Control) -> None:
    with pytest.raises(PeerFault, match="not in the view"):
        validator().check(D, control, 0)


def test_a_partitionable_group_may_skip_numbers_and_needs_no_quorum() -> None:
    alone = View(5, (B,), (Part(VIEW.id, (B,)),))
    plan = changed(PLAN, members=(B,), holders=(0, 0, 0))
    propose = Propose(THEIRS, Proposal(alone, (plan,), ORDERING, ViewReason()))
    validator(primary=False).check(B, propose, 0)
    validator(in_view=False).check(B, propose, 0)
    with pytest.raises(PeerFault, match="a view is skipped"):
        validator().check(B, propose, 0)


def test_rounds_are_compared_with_the_highest_known_one() -> None:
    validator().check(B, changed(HEARTBEAT, round=FAR), 100)


def test_a_process_that_joins_does_not_know_how_far_the_group_is() -> None:
    far = Heartbeat(1, ViewId(FAR, B), (B,), FAR, (), (0,))
    validator(in_view=False).check(B, far, 0)
    validator(in_view=False).check(B, Install(PROPOSAL, OrderDigest(FAR)), 0)
    with pytest.raises(FarAhead, match="the round is far ahead"):
        validator(in_view=False).check(B, changed(far, round=NUMBER_MAX), 0)
    with pytest.raises(FarAhead, match="the position is far ahead"):
        validator(in_view=False).check(B, Install(PROPOSAL, OrderDigest(NUMBER_MAX)), 0)


def test_a_process_is_known_by_its_view_or_its_heartbeat() -> None:
    neighbours = Neighbours(A, options())
    validating = DatagramValidator(A, True, neighbours, check_ordering)
    prepare = Prepare(THEIRS, (A, B))
    assert validating.knows(B, HEARTBEAT) and not validating.knows(B, prepare)
    validating.epoch = epoch(A, VIEW)
    assert validating.knows(B, prepare) and not validating.knows(D, prepare)
    hear(neighbours, D, 0)
    assert not validating.knows(D, prepare)
    neighbours.on_heartbeat(D, heartbeat(A))
    assert validating.knows(D, prepare)


def test_a_promise_has_the_acknowledgements_of_all_members_in_a_partitionable_group() -> None:
    checking = validator(primary=False)
    checking.check(B, changed(PROMISE, acknowledged=((0,) * 3,) * 3), 0)
    for rows in ((), ((0,) * 3,) * 2, ((0,) * 2,) * 3):
        with pytest.raises(PeerFault, match="the acknowledgements are not those of the members"):
            checking.check(B, changed(PROMISE, acknowledged=rows), 0)
