"""A round: from the first question to the decision, and what must not be replaced."""

from typing import Any

from membership.builders import ORDERING, A, B, C, D, view
from priocast.core.identity import ProcessId
from priocast.core.view import Part, View
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
    *voters: ProcessId, members: tuple[ProcessId, ...] = (), primary: bool = True, of: View | None = OLD
) -> Round:
    wish = TargetView(voters, members or voters)
    return Round(Ballot(5, voters[0]), wish, of, ORDERING, "why", primary, now=0)


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


def test_everybody_is_asked_until_all_have_answered() -> None:
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
    assert round_.waiting_for() == (A, B)
    proposed(round_, {A: promise(round_), B: promise(round_)})
    round_.on_accepted(B, Accepted(Ballot(4, A), OrderDigest(0)), 1)
    round_.on_accepted(D, Accepted(round_.ballot, OrderDigest(0)), 1)
    assert round_.waiting_for() == (A, B)


def test_what_any_of_those_who_go_on_holds_counts_for_all_of_them() -> None:
    round_ = round_of(B, C)
    proposal = proposed(
        round_, {B: promise(round_, received=(5, 2, 0)), C: promise(round_, received=(3, 4, 1))}
    )
    assert proposal.view == View(2, (B, C), (Part(OLD.id, (B, C)),))
    assert proposal.flush_plans == (
        FlushPlan(OLD.id, (B, C), counts=(5, 4, 1), holders=(0, 1, 1), acknowledged=()),
    )
    assert proposal.reason == "why" and proposal.ordering == ORDERING


def test_who_joins_comes_last_and_who_leaves_is_only_in_the_closure() -> None:
    round_ = round_of(A, B, C, D, members=(A, C, D))
    promises = {voter: promise(round_) for voter in (A, B, C)} | {D: promise(round_, None)}
    proposal = proposed(round_, promises)
    assert proposal.view.members == (A, C, D)
    assert proposal.view.parts == (Part(OLD.id, (A, C)), Part(None, (D,)))
    assert proposal.flush_plans[0].members == (A, B, C)


def test_a_proposal_that_may_have_been_decided_is_made_again() -> None:
    """Single-decree Paxos: of those that were accepted, the one of the highest ballot."""
    older = Proposal(View(2, (A, B)), (), ORDERING, "older")
    newer = Proposal(View(2, (A, C)), (), ORDERING, "newer")
    round_ = round_of(B, C)
    promises = {
        B: promise(round_, accepted_in=Ballot(3, A), accepted=older),
        C: promise(round_, accepted_in=Ballot(4, A), accepted=newer),
    }
    assert proposed(round_, promises) == newer


def test_what_was_accepted_for_an_earlier_view_is_history() -> None:
    history = Proposal(View(1, (A, B)), (), ORDERING, "history")
    round_ = round_of(B, C)
    promises = {B: promise(round_, accepted_in=Ballot(3, A), accepted=history), C: promise(round_)}
    assert proposed(round_, promises).view.members == (B, C)


def test_a_quorum_decides_but_only_in_a_hurry() -> None:
    round_ = round_of(A, B, C)
    proposed(round_, {voter: promise(round_) for voter in (A, B, C)})
    accept(round_, A)
    assert not round_.is_decided(hurried=True), "one of three"
    accept(round_, C)
    assert round_.is_decided(hurried=True) and not round_.is_decided(hurried=False)
    accept(round_, B)
    assert round_.is_decided(hurried=False)


def test_voters_who_are_not_of_the_old_view_do_not_decide() -> None:
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


def test_the_decision_says_where_the_order_stands() -> None:
    round_ = round_of(A, B)
    proposed(round_, {A: promise(round_), B: promise(round_)})
    accept(round_, A, B, position=42)
    decision = round_.decision()
    assert decision.proposal == round_.proposal and decision.digest.position == 42


def test_a_merge_has_a_part_and_a_closure_for_each_view_and_the_highest_number() -> None:
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


def test_a_new_view_has_a_number_above_whatever_was_accepted() -> None:
    pending = Proposal(View(9, (A, C)), (), ORDERING, "")
    round_ = round_of(A, B, primary=False)
    promises = {A: promise(round_), B: promise(round_, accepted_in=Ballot(3, C), accepted=pending)}
    assert proposed(round_, promises).view.number == 10


def test_what_is_known_of_those_who_stay_behind_is_put_together() -> None:
    round_ = round_of(A, B, primary=False)
    promises = {
        A: promise(round_, received=(4, 0, 0), acknowledged=((4, 0, 0), (2, 0, 0), (1, 0, 3))),
        B: promise(round_, received=(3, 0, 0), acknowledged=((3, 0, 0), (3, 0, 0), (2, 0, 1))),
    }
    assert proposed(round_, promises).flush_plans[0].acknowledged == ((4, 0, 0), (3, 0, 0), (2, 0, 3))


def test_whoever_declines_is_remembered_once() -> None:
    round_ = round_of(A, B, C, primary=False)
    round_.on_promise(A, promise(round_), 1)
    assert not round_.on_declined(B) and not round_.on_declined(B) and round_.on_declined(C)
    assert round_.declined == [B, C]
