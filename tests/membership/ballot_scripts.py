"""Scripts for voters and rounds alone, in which a mutant of the agreement on a view must be caught.

Five voters, and two proposers that each reach a quorum; c is in both. A script says which datagram arrives
when, and returns the promises that are broken at its end: more than one view may not be decided.
"""

from membership.builders import ORDERING, A, B, C, D, E, acquainted, epoch, view
from priocast.core.guarantees import VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.membership.outputs import AcceptProposal, SendControl, StartRound
from priocast.membership.packets import Accepted, Ballot, OrderDigest, Prepare, Promise, Propose
from priocast.membership.round import Round
from priocast.membership.target_view import TargetView
from priocast.membership.voter import Voter

OLD = view(A, B, C, D, E)
Voters = dict[ProcessId, Voter]


def a_question_is_repeated_after_a_higher_ballot() -> set[str]:
    """Member c follows a, then e, whose view is decided; a copy of a's question and its proposal follow."""
    voters = _voters()
    earlier, later = _round(1, A, B, C), _round(2, E, D, C)
    question = _promise(earlier, voters)
    _promise(later, voters)
    _accept(later, voters)
    assert later.is_decided(hurried=False)
    voters[C].on_prepare(A, question, "", 0)
    _accept(earlier, voters)
    return _broken_by(earlier, later)


def a_decided_view_is_known_to_nobody() -> set[str]:
    """A view is decided, and its proposer crashes before it says so: e hears of the proposal from c alone."""
    voters = _voters()
    earlier, later = _round(1, A, B, C), _round(2, E, D, C)
    _promise(earlier, voters)
    _accept(earlier, voters)
    assert earlier.is_decided(hurried=False)
    _promise(later, voters)
    _accept(later, voters)
    assert later.is_decided(hurried=False)
    return _broken_by(earlier, later)


def _voters() -> Voters:
    """A voter for each member, all in the old view."""
    voters = {member: Voter(member, acquainted(member, {}), primary=True) for member in OLD.members}
    for member, voter in voters.items():
        voter.on_view(epoch(member, OLD))
    return voters


def _round(number: int, *members: ProcessId) -> Round:
    """A round for a view of these members, a quorum; the first of them proposes it."""
    start = StartRound(TargetView(members, members), ORDERING)
    return Round(Ballot(number, members[0]), start, OLD, True, now=0)


def _promise(round_: Round, voters: Voters) -> Prepare:
    """All voters of a round get its question, which is returned, and promise."""
    question = round_.question()
    assert isinstance(question, Prepare)
    for member in round_.voters:
        (output,) = voters[member].on_prepare(round_.ballot.proposer, question, "", 0)
        assert isinstance(output, SendControl) and isinstance(output.control, Promise)
        round_.on_promise(member, output.control, 0)
    return question


def _accept(round_: Round, voters: Voters) -> None:
    """All voters of a round get its proposal; those that accept it say so."""
    proposal = round_.question()
    assert isinstance(proposal, Propose)
    for member in round_.voters:
        (output,) = voters[member].on_propose(round_.ballot.proposer, proposal, 0)
        if isinstance(output, AcceptProposal):
            round_.on_accepted(member, Accepted(output.ballot, OrderDigest(0)), 0)


def _broken_by(*rounds: Round) -> set[str]:
    """View synchrony, if two of these rounds have decided on different views."""
    decided = {each.decision().proposal.view for each in rounds if each.is_decided(hurried=False)}
    assert {each.number for each in decided} == {OLD.number + 1}
    return {VIEW_SYNCHRONY} if len(decided) > 1 else set()
