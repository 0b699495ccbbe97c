"""Mutants of membership that storms meet by chance only: each has a script in which it must be caught.

A script says step by step what arrives when, and returns the promises that are broken at its end: none by the
real code, and by the mutant the one that its row names.
"""

from collections.abc import Callable, Collection

import pytest

from membership import mutants
from membership.builders import ORDERING, A, B, C, D, E, acquainted, epoch, view
from membership.mutants import Mutant
from priocast.core.guarantees import AGREEMENT, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.membership.outputs import AcceptProposal, SendControl, StartRound
from priocast.membership.packets import Accepted, Ballot, OrderDigest, Prepare, Promise, Propose
from priocast.membership.round import Round
from priocast.membership.target_view import TargetView
from priocast.membership.voter import Voter
from support.stacks import Neighbourhood, founded

OLD = view(A, B, C, D, E)


def a_frame_arrives_after_the_promise() -> set[str]:
    """The coordinator a crashes; what it ordered last reaches c after c has told b what it has received."""
    group = founded("abc")
    coordinator, voter = group.members["a"], group.members["c"].membership.voter
    group.broadcast("a", "late")
    coordinator.turn(group.now)
    frames = dict(coordinator.frames(group.now))["c"]
    group.kill("a")
    group.run_until(lambda: voter.promised is not None)
    group.receive(coordinator.me, "c", *frames)
    group.wait_view("bc")
    group.broadcast("b", "next")
    group.run_until(lambda: all("next" in group.payloads(name) for name in "bc"))
    return broken_between(group, "b", "c")


def only_one_knows_what_the_sender_knew() -> set[str]:
    """Member c knows the position of its message and tells a, but not b; then c is cut off."""
    group = founded("abc", policy="partitionable")
    group.lost.add(("c", "b"))
    group.broadcast("c", "known")
    group.wait_payloads("a", "known")
    assert group.payloads("b") == [], "b must not know yet that c knows the position"
    group.cut("c", "ab")
    group.wait_view("ab")
    group.broadcast("a", "next")
    group.run_until(lambda: all("next" in group.payloads(name) for name in "ab"))
    return broken_between(group, "a", "b")


def broken_between(group: Neighbourhood, one: str, other: str) -> set[str]:
    """The promises that two members have broken which are in one view and have delivered all of it."""
    delivered = [
        {(delivery.position, delivery.message.id) for delivery in group.applications[name].deliveries}
        for name in (one, other)
    ]
    positions = {position for position, _ in delivered[0] | delivered[1]}
    broken = set()
    if len(positions) < len(delivered[0] | delivered[1]):
        broken.add(TOTAL_ORDER)
    if {message for _, message in delivered[0]} != {message for _, message in delivered[1]}:
        broken.add(AGREEMENT)
    return broken


def a_question_is_repeated_after_a_higher_ballot() -> set[str]:
    """Member c follows a, then e, whose view is decided; a copy of a's question and its proposal follow."""
    voters = {member: _voter(member) for member in OLD.members}
    earlier, later = _round(1, A, B, C), _round(2, E, D, C)
    question = earlier.question()
    _promise(earlier, voters)
    _promise(later, voters)
    _accept(later, voters)
    assert later.is_decided(hurried=False)
    assert isinstance(question, Prepare)
    voters[C].on_prepare(A, question, "", 0)
    _accept(earlier, voters)
    decided = [each.decision().proposal.view for each in (earlier, later) if each.is_decided(hurried=False)]
    assert {each.number for each in decided} == {OLD.number + 1}
    return {VIEW_SYNCHRONY} if len(decided) > 1 else set()


def _voter(member: ProcessId) -> Voter:
    voter = Voter(member, acquainted(member, {}), primary=True)
    voter.on_view(epoch(member, OLD))
    return voter


def _round(number: int, *members: ProcessId) -> Round:
    """A round for a view of these members, a quorum; the first of them proposes it."""
    return Round(
        Ballot(number, members[0]), StartRound(TargetView(members, members), ORDERING), OLD, True, now=0
    )


def _promise(round_: Round, voters: dict[ProcessId, Voter]) -> None:
    """All voters of a round get its question, and answer."""
    question = round_.question()
    assert isinstance(question, Prepare)
    for member in round_.voters:
        (output,) = voters[member].on_prepare(round_.ballot.proposer, question, "", 0)
        assert isinstance(output, SendControl) and isinstance(output.control, Promise)
        round_.on_promise(member, output.control, 0)


def _accept(round_: Round, voters: dict[ProcessId, Voter]) -> None:
    """All voters of a round get its proposal; those that accept it say so."""
    proposal = round_.question()
    assert isinstance(proposal, Propose)
    for member in round_.voters:
        (output,) = voters[member].on_propose(round_.ballot.proposer, proposal, 0)
        if isinstance(output, AcceptProposal):
            round_.on_accepted(member, Accepted(output.ballot, OrderDigest(0)), 0)


Script = Callable[[], Collection[str]]
SCRIPTED: list[tuple[Mutant, Script, str]] = [
    (mutants.does_not_freeze_at_the_promise, a_frame_arrives_after_the_promise, TOTAL_ORDER),
    (mutants.each_member_judges_for_itself, only_one_knows_what_the_sender_knew, AGREEMENT),
    (mutants.follows_a_lower_ballot, a_question_is_repeated_after_a_higher_ballot, VIEW_SYNCHRONY),
]


@pytest.mark.parametrize(("mutant", "script", "promise"), SCRIPTED)
def test_the_script_catches_the_mutant(
    mutant: Mutant, script: Script, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert script() == set()
    mutant(monkeypatch)
    assert promise in script()
