"""The voter: it follows the highest ballot, and forgets nothing that may have been decided."""

import pytest

from membership.builders import ORDERING, REASON, A, B, C, D, acquainted, batch, epoch, heartbeat, view
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.epoch import Epoch
from priocast.membership.outputs import AcceptProposal, InstallView, MembershipOutput, SendControl
from priocast.membership.packets import (
    Ballot,
    Control,
    Declined,
    FlushPlan,
    FlushReply,
    FlushRequest,
    Install,
    OrderDigest,
    Prepare,
    Promise,
    Proposal,
    Propose,
)
from priocast.membership.voter import Voter
from priocast.protocols.flow.packets import Ordered

OLD = view(A, B, C)
DIGEST = OrderDigest(3)


def voter_of(heard: tuple[ProcessId, ...] = (A, C)) -> tuple[Voter, Epoch]:
    """The voter of b, in a view of three, and its epoch."""
    voter = Voter(B, acquainted(B, {process: heartbeat(B, of=OLD.id) for process in heard}))
    old = epoch(B, OLD)
    voter.on_view(old)
    return voter, old


def promised(number: int = 5, heard: tuple[ProcessId, ...] = (A, C)) -> Voter:
    voter, _ = voter_of(heard)
    voter.on_prepare(A, Prepare(ballot(number), (A, B)), "", 0)
    return voter


def ordered(number: int) -> bytes:
    """The number-th packet of the sequencer."""
    return epoch(A, OLD)._encode(Ordered(number - 1, (batch(A, number - 1),)))


def ballot(number: int, proposer: ProcessId = A) -> Ballot:
    return Ballot(number, proposer)


def proposal(*members: ProcessId, number: int = 2, counts: tuple[int, ...] = (0, 0, 0)) -> Proposal:
    staying = tuple(member for member in members if member in OLD.members)
    plan = FlushPlan(OLD.id, staying, counts, (0, 0, 0), ())
    return Proposal(View(number, members), (plan,), ORDERING, REASON)


def only(outputs: list[MembershipOutput]) -> tuple[ProcessId, Control]:
    """The only datagram."""
    (output,) = outputs
    assert isinstance(output, SendControl)
    return output.to, output.control


def test_a_promise_reports_what_was_received_and_freezes_the_epoch() -> None:
    voter, old = voter_of()
    outputs = voter.on_prepare(A, Prepare(ballot(5), (A, B)), "", 0)
    acknowledged = ((0, 0, 0),) * 3
    assert only(outputs) == (A, Promise(ballot(5), OLD, (0, 0, 0), acknowledged, None, None))
    assert voter.promised == ballot(5) and old.frozen


def test_only_the_proposer_itself_may_ask_its_voters() -> None:
    voter, old = voter_of()
    assert voter.on_prepare(C, Prepare(ballot(5), (A, B)), "", 0) == []
    assert voter.on_prepare(A, Prepare(ballot(5), (A, C)), "", 0) == []
    assert voter.promised is None and not old.frozen
    assert promised().on_propose(C, Propose(ballot(5), proposal(A, B)), 0) == []


def test_a_promise_is_repeated_and_a_lower_ballot_declined() -> None:
    voter = promised()
    assert isinstance(only(voter.on_prepare(A, Prepare(ballot(5), (A, B)), "", 0))[1], Promise)
    declined = only(voter.on_prepare(C, Prepare(ballot(4, C), (B, C)), "", 0))
    assert declined == (C, Declined(ballot(4, C), ballot(5), "a higher ballot is in progress"))
    higher = only(voter.on_prepare(C, Prepare(ballot(6, C), (B, C)), "", 0))
    assert isinstance(higher[1], Promise) and voter.promised == ballot(6, C)


def test_a_voter_that_objects_promises_nothing() -> None:
    voter, old = voter_of()
    outputs = voter.on_prepare(A, Prepare(ballot(5), (A, B)), "b does not hear a", 0)
    assert only(outputs) == (A, Declined(ballot(5), ballot(5), "b does not hear a"))
    assert voter.promised is None and not old.frozen


def test_a_proposal_of_another_ballot_is_not_accepted() -> None:
    voter = promised()
    assert isinstance(only(voter.on_propose(A, Propose(ballot(4), proposal(A, B)), 0))[1], Declined)
    assert voter.accepted is None


def test_later_proposers_are_told_what_was_accepted() -> None:
    voter = promised()
    outputs = voter.on_propose(A, Propose(ballot(5), proposal(A, B)), 0)
    assert outputs == [AcceptProposal(ballot(5), proposal(A, B))]
    _, promise = only(voter.on_prepare(C, Prepare(ballot(6, C), (B, C)), "", 0))
    assert isinstance(promise, Promise)
    assert (promise.accepted_in, promise.accepted) == (ballot(5), proposal(A, B))


def test_nothing_is_accepted_before_all_packets_that_count_are_here() -> None:
    voter = promised()
    wanted = proposal(A, B, counts=(2, 0, 0))
    assert only(voter.on_propose(A, Propose(ballot(5), wanted), 0)) == (A, FlushRequest(OLD.id, A, 1, 2))
    assert voter.accepted is None
    reply = FlushReply(OLD.id, A, 1, (ordered(1),))
    assert only(voter.on_flush_reply(A, reply, 0)) == (A, FlushRequest(OLD.id, A, 2, 2))
    twice = FlushReply(OLD.id, A, 1, (ordered(1), ordered(2)))
    accepted = [AcceptProposal(ballot(5), wanted)]
    assert voter.on_flush_reply(A, twice, 0) == accepted, "what came twice counts once"


def test_packets_that_were_not_asked_for_are_ignored() -> None:
    voter = promised()
    forged = FlushReply(OLD.id, A, 1, (ordered(1), ordered(2)))
    assert voter.on_flush_reply(C, forged, 0) == [], "nothing was asked for yet"
    wanted = proposal(A, B, counts=(1, 0, 0))
    voter.on_propose(A, Propose(ballot(5), wanted), 0)
    assert voter.on_flush_reply(C, forged, 0) == [], "another member was asked"
    elsewhere = FlushReply(view(A, B, number=7).id, A, 1, (ordered(1),))
    assert voter.on_flush_reply(A, elsewhere, 0) == [], "of another view"
    assert voter.on_flush_reply(A, forged, 0) == [AcceptProposal(ballot(5), wanted)]
    _, promise = only(voter.on_prepare(C, Prepare(ballot(6, C), (B, C)), "", 0))
    assert isinstance(promise, Promise) and promise.received == (1, 0, 0), "no more than was asked for"


def test_if_the_holder_has_failed_another_member_is_asked() -> None:
    voter = promised(heard=(C,))
    wanted = proposal(A, B, C, counts=(1, 0, 0))
    asked = [only(voter.on_propose(A, Propose(ballot(5), wanted), 0))[0]]
    asked += [only(voter.on_tick(now))[0] for now in (1, 2)]
    assert asked == [A, C, A], "one after the other"


def test_a_voter_that_the_proposal_excludes_can_still_accept() -> None:
    """In Paxos an acceptor accepts values that are not about itself, or a quorum may be out of reach."""
    voter = promised()
    without = proposal(A, C)
    assert voter.on_propose(A, Propose(ballot(5), without), 0) == [AcceptProposal(ballot(5), without)]
    assert voter.accepted == without
    assert voter.on_install(A, Install(without, DIGEST), 0) == [], "but it does not continue with it"


def test_a_decision_is_installed_only_by_those_whom_it_concerns() -> None:
    voter, old = voter_of()
    decided = proposal(A, B)
    assert voter.on_install(A, Install(decided, DIGEST), 0) == [InstallView(decided, DIGEST)] and old.frozen
    stranger = Voter(D, acquainted(D, {}))
    assert stranger.on_install(A, Install(decided, DIGEST), 0) == []


@pytest.mark.parametrize("primary", [True, False])
def test_an_accepted_proposal_binds_a_voter_only_where_all_must_accept(primary: bool) -> None:
    """Where a quorum decides, it may have decided without this voter; else the other view needs its vote."""
    voter = Voter(B, acquainted(B, {}), primary=primary)
    voter.on_view(epoch(B, OLD))
    voter.on_prepare(A, Prepare(ballot(5), (A, B)), "", 0)
    voter.on_propose(A, Propose(ballot(5), proposal(A, B)), 0)
    another = proposal(B, C)
    installed = [InstallView(another, DIGEST)] if primary else []
    assert voter.on_install(C, Install(another, DIGEST), 0) == installed
    assert voter.on_install(A, Install(proposal(A, B), DIGEST), 0) != []


def test_a_decision_of_the_past_is_ignored() -> None:
    voter, _ = voter_of()
    assert voter.on_install(A, Install(proposal(A, B, number=1), DIGEST), 0) == []


def test_a_decision_waits_for_the_packets_that_count() -> None:
    voter, _ = voter_of()
    decided = proposal(A, B, counts=(1, 0, 0))
    outputs = voter.on_install(A, Install(decided, DIGEST), 0)
    assert only(outputs) == (A, FlushRequest(OLD.id, A, 1, 1))
    reply = FlushReply(OLD.id, A, 1, (ordered(1),))
    assert voter.on_flush_reply(A, reply, 0) == [InstallView(decided, DIGEST)]


def test_a_flush_request_is_answered_with_the_packets_that_are_here() -> None:
    voter = promised()
    voter.on_propose(A, Propose(ballot(5), proposal(A, B, counts=(2, 0, 0))), 0)
    reply = FlushReply(OLD.id, A, 1, (ordered(1), ordered(2)))
    voter.on_flush_reply(A, reply, 0)
    assert only(voter.on_flush_request(C, FlushRequest(OLD.id, A, 1, 9), 0)) == (C, reply)
    assert voter.on_flush_request(C, FlushRequest(OLD.id, A, 3, 9), 0) == []
    assert voter.on_flush_request(C, FlushRequest(view(A, C, number=7).id, A, 1, 9), 0) == []
    voter.on_view(epoch(B, view(A, B, number=2)))
    assert only(voter.on_flush_request(C, FlushRequest(OLD.id, A, 1, 9), 0)) == (C, reply), (
        "of the view before"
    )
