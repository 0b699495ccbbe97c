"""A round: from the first question to the decision, and what must not be replaced."""

from typing import Any

from membership.builders import ORDERING, A, B, C, D, E, view
from priocast.core.identity import NAME_LENGTH_MAX, ProcessId
from priocast.core.view import Part, View
from priocast.core.view_reason import DETAIL_LENGTH_MAX, Eviction, ViewReason
from priocast.membership.datagrams import frame_of, read
from priocast.membership.options import MEMBERS_MAX
from priocast.membership.outputs import StartRound
from priocast.membership.packets import (
    Accepted,
    Ballot,
    FlushPlan,
    OrderDigest,
    Prepare,
    Promise,
    Proposal,
    Propose,
)
from priocast.membership.round import Round
from priocast.membership.target_view import TargetView

OLD = view(A, B, C)


def round_of(
    *voters: ProcessId,
    members: tuple[ProcessId, ...] = (),
    primary: bool = True,
    of: View | None = OLD,
    evictions: tuple[Eviction, ...] = (),
    reorders: bool = False,
) -> Round:
    start = StartRound(TargetView(voters, members or voters), ORDERING, evictions, reorders)
    return Round(Ballot(5, voters[0]), start, of, primary, now=0)


def promise(
    round_: Round, of: View | None = OLD, received: tuple[int, ...] = (0, 0, 0), **more: Any
) -> Promise:
    acknowledged = more.pop("acknowledged", tuple(received for _ in received))
    return Promise(
        round_.ballot, of, received if of else (), acknowledged, more.get("accepted_in"), more.get("accepted")
    )


def proposed(round_: Round, promises: dict[ProcessId, Promise]) -> Proposal:
    """The proposal that these promises lead to."""
    for voter, each in promises.items():
        round_.on_promise(voter, each, 1)
    assert round_.proposal is not None
    return round_.proposal


def accept(round_: Round, *voters: ProcessId, position: int = 7) -> None:
    for voter in voters:
        round_.on_accepted(voter, Accepted(round_.ballot, OrderDigest(position)), 2)


def test_voters_are_asked_until_all_have_answered() -> None:
    round_ = round_of(A, B, C)
    assert round_.question() == Prepare(round_.ballot, (A, B, C))
    assert not round_.on_promise(A, promise(round_), 1) and round_.waiting_for() == (B, C)
    assert not round_.on_promise(B, promise(round_), 1)
    assert round_.on_promise(C, promise(round_), 1)
    assert isinstance(round_.question(), Propose) and round_.waiting_for() == (A, B, C)
    accept(round_, B)
    assert round_.waiting_for() == (A, C)


def test_answers_to_another_ballot_or_from_others_do_not_count() -> None:
    round_ = round_of(A, B)
    stale = Promise(Ballot(4, A), OLD, (0, 0, 0), (), None, None)
    assert not round_.on_promise(B, stale, 1) and not round_.on_promise(D, promise(round_), 1)
    assert not round_.on_declined(D) and round_.declined == []
    assert round_.waiting_for() == (A, B)
    proposed(round_, {A: promise(round_), B: promise(round_)})
    round_.on_accepted(B, Accepted(Ballot(4, A), OrderDigest(0)), 1)
    round_.on_accepted(D, Accepted(round_.ballot, OrderDigest(0)), 1)
    assert round_.waiting_for() == (A, B)


def test_an_acceptance_counts_only_of_a_voter_and_for_a_proposal() -> None:
    round_ = round_of(A, B, primary=False)
    accept(round_, A, B)
    proposed(round_, {A: promise(round_), B: promise(round_)})
    accept(round_, A, D)
    assert not round_.is_decided(hurried=False), "b has not accepted"
    accept(round_, B)
    assert round_.is_decided(hurried=False)


def test_a_repeated_promise_does_not_change_the_proposal() -> None:
    """One ballot has one proposal: it may be accepted already."""
    round_ = round_of(A, B)
    proposal = proposed(round_, {A: promise(round_), B: promise(round_)})
    another = Proposal(View(2, (A,)), (), ORDERING, ViewReason(left=("b",)))
    repeated = promise(round_, accepted_in=Ballot(4, B), accepted=another)
    assert not round_.on_promise(B, repeated, 2)
    assert round_.proposal == proposal


def test_a_packet_that_one_voter_received_counts_for_all() -> None:
    round_ = round_of(B, C)
    proposal = proposed(
        round_, {B: promise(round_, received=(5, 2, 0)), C: promise(round_, received=(3, 4, 1))}
    )
    assert proposal.view == View(2, (B, C), (Part(OLD.id, (B, C)),))
    assert proposal.flush_plans == (
        FlushPlan(OLD.id, (B, C), counts=(5, 4, 1), holders=(0, 1, 1), acknowledged=()),
    )
    assert proposal.reason == ViewReason(failed=("a",)) and proposal.ordering == ORDERING


def test_a_joining_process_comes_last_and_a_leaving_one_is_only_in_the_flush_plan() -> None:
    round_ = round_of(A, B, C, D, members=(A, C, D))
    promises = {voter: promise(round_) for voter in (A, B, C)} | {D: promise(round_, None)}
    proposal = proposed(round_, promises)
    assert proposal.view.members == (A, C, D)
    assert proposal.view.parts == (Part(OLD.id, (A, C)), Part(None, (D,)))
    assert proposal.flush_plans[0].members == (A, B, C)


def test_a_proposal_that_may_have_been_decided_is_made_again() -> None:
    """Single-decree Paxos: of those that were accepted, the one of the highest ballot."""
    older = Proposal(View(2, (A, B)), (), ORDERING, ViewReason(left=("c",)))
    newer = Proposal(View(2, (A, C)), (), ORDERING, ViewReason(left=("b",)))
    round_ = round_of(B, C)
    promises = {
        B: promise(round_, accepted_in=Ballot(3, A), accepted=older),
        C: promise(round_, accepted_in=Ballot(4, A), accepted=newer),
    }
    assert proposed(round_, promises) == newer


def test_a_first_view_that_may_have_been_decided_is_made_again() -> None:
    """Among founders nobody has a view, so all of them are electors."""
    begun = Proposal(View(1, (A, B, C), (Part(None, (A, B, C)),)), (), ORDERING, ViewReason(founded=True))
    round_ = round_of(B, C, of=None)
    accepted = promise(round_, None, accepted_in=Ballot(3, A), accepted=begun)
    assert proposed(round_, {B: promise(round_, None), C: accepted}) == begun


def test_an_acceptance_for_an_earlier_view_is_ignored() -> None:
    history = Proposal(View(1, (A, B)), (), ORDERING, ViewReason())
    round_ = round_of(B, C)
    promises = {B: promise(round_, accepted_in=Ballot(3, A), accepted=history), C: promise(round_)}
    assert proposed(round_, promises).view.members == (B, C)


def test_what_only_a_joining_process_accepted_is_not_made_again() -> None:
    """It is no elector, so that was not decided; and only the crashed proposer may have what it counts."""
    lost = Proposal(View(2, (A, B, C, D)), (), ORDERING, ViewReason(joined=("d",)))
    round_ = round_of(B, C, D)
    accepted = promise(round_, None, accepted_in=Ballot(3, A), accepted=lost)
    proposal = proposed(round_, {B: promise(round_), C: promise(round_), D: accepted})
    assert proposal.view == View(2, (B, C, D), (Part(OLD.id, (B, C)), Part(None, (D,))))


def test_a_quorum_decides_but_only_in_a_hurry() -> None:
    round_ = round_of(A, B, C)
    proposed(round_, {voter: promise(round_) for voter in (A, B, C)})
    accept(round_, A)
    assert not round_.is_decided(hurried=True), "one of three"
    accept(round_, C)
    assert round_.is_decided(hurried=True) and not round_.is_decided(hurried=False)
    accept(round_, B)
    assert round_.is_decided(hurried=False)


def test_voters_that_are_not_of_the_old_view_do_not_decide() -> None:
    round_ = round_of(A, D)
    proposed(round_, {A: promise(round_), D: promise(round_, None)})
    accept(round_, A, D)
    assert not round_.is_decided(hurried=True), "a is one of three, and d none of them"


def test_in_a_partitionable_group_all_must_accept() -> None:
    round_ = round_of(A, B, C, primary=False)
    proposed(round_, {voter: promise(round_) for voter in (A, B, C)})
    accept(round_, A, B)
    assert not round_.is_decided(hurried=True)
    accept(round_, C)
    assert round_.is_decided(hurried=False)


def test_the_decision_has_the_digest_of_the_order() -> None:
    round_ = round_of(A, B)
    proposed(round_, {A: promise(round_), B: promise(round_)})
    accept(round_, A, B, position=42)
    decision = round_.decision()
    assert decision.proposal == round_.proposal and decision.digest.position == 42


def test_in_a_primary_group_the_proposer_believes_its_own_digest() -> None:
    """All have delivered the same messages, or one of them does not tell the truth."""
    round_ = round_of(B, A, C)
    proposed(round_, {voter: promise(round_) for voter in (A, B, C)})
    accept(round_, A, position=1 << 40)
    accept(round_, B, C, position=7)
    assert round_.decision().digest.position == 7


def test_a_merge_has_a_part_and_a_flush_plan_for_each_view() -> None:
    mine, theirs = view(A, B, number=3), view(C, number=7)
    round_ = round_of(A, B, C, primary=False, of=mine)
    proposal = proposed(
        round_,
        {
            A: promise(round_, mine, received=(1, 0)),
            B: promise(round_, mine, received=(2, 0)),
            C: promise(round_, theirs, received=(4,)),
        },
    )
    assert proposal.view == View(8, (A, B, C), (Part(mine.id, (A, B)), Part(theirs.id, (C,))))
    assert [plan.counts for plan in proposal.flush_plans] == [(2, 0), (4,)]
    accept(round_, A, B, position=12)
    accept(round_, C, position=30)
    assert round_.decision().digest.position == 30, "the merged view begins after both"


def test_a_new_view_has_a_higher_number_than_any_accepted_one() -> None:
    pending = Proposal(View(9, (A, C)), (), ORDERING, ViewReason())
    round_ = round_of(A, B, primary=False)
    promises = {A: promise(round_), B: promise(round_, accepted_in=Ballot(3, C), accepted=pending)}
    assert proposed(round_, promises).view.number == 10


def test_acknowledgements_of_members_that_stay_behind_are_merged() -> None:
    round_ = round_of(A, B, primary=False)
    promises = {
        A: promise(round_, received=(4, 0, 0), acknowledged=((4, 0, 0), (2, 0, 0), (1, 0, 3))),
        B: promise(round_, received=(3, 0, 0), acknowledged=((3, 0, 0), (3, 0, 0), (2, 0, 1))),
    }
    assert proposed(round_, promises).flush_plans[0].acknowledged == ((4, 0, 0), (3, 0, 0), (2, 0, 3))


def test_a_decline_counts_once() -> None:
    round_ = round_of(A, B, C, primary=False)
    round_.on_promise(A, promise(round_), 1)
    assert not round_.on_declined(B) and not round_.on_declined(B) and round_.on_declined(C)
    assert round_.declined == [B, C]


def test_the_reason_of_a_first_view_is_its_foundation() -> None:
    round_ = round_of(A, B, of=None)
    promises = {voter: promise(round_, None) for voter in (A, B)}
    assert proposed(round_, promises).reason == ViewReason(founded=True)


def test_the_reason_names_who_joined_left_failed_and_was_evicted_and_the_new_order() -> None:
    eviction = Eviction("b", "fault", "b#1 sent nonsense")
    old = view(A, B, C, E)
    round_ = round_of(A, B, C, D, members=(A, D), of=old, evictions=(eviction,), reorders=True)
    received = (0, 0, 0, 0)
    promises = {voter: promise(round_, old, received) for voter in (A, B, C)} | {D: promise(round_, None)}
    reason = proposed(round_, promises).reason
    assert reason == ViewReason(
        joined=("d",), left=("c",), failed=("e",), evicted=(eviction,), order="sequencer-ub"
    )
    assert str(reason) == (
        "d joined; e failed; c left; b was evicted (fault): b#1 sent nonsense; "
        "the order changed to sequencer-ub"
    )


def test_the_reason_of_a_merge_names_the_members_of_the_other_parts() -> None:
    mine, theirs = view(A, B, number=3), view(C, number=7)
    round_ = round_of(A, B, C, D, primary=False, of=mine)
    promises = {
        A: promise(round_, mine, (0, 0)),
        B: promise(round_, mine, (0, 0)),
        C: promise(round_, theirs, (0,)),
        D: promise(round_, None),
    }
    assert proposed(round_, promises).reason == ViewReason(merged=("c",), joined=("d",))


def test_a_proposal_can_say_anything_about_the_largest_view() -> None:
    """The longest reason: every member of a view of the largest size was evicted, with the longest text."""
    names = [f"{number:03}{'x' * (NAME_LENGTH_MAX - 3)}" for number in range(MEMBERS_MAX)]
    evicted = tuple(Eviction(name, "fault", "y" * DETAIL_LENGTH_MAX) for name in names)
    reason = ViewReason(False, tuple(names), tuple(names), tuple(names), evicted, tuple(names), "z" * 128)
    members = tuple(ProcessId(name) for name in names)
    proposal = Proposal(View(2, members, (Part(OLD.id, members),)), (), ORDERING, reason)
    assert read(A, frame_of(Propose(Ballot(1, A), proposal))) == Propose(Ballot(1, A), proposal)
    assert str(reason).count("; ") == 5 * MEMBERS_MAX
