"""Consensus: whatever is lost, overtaken and crashes, members agree; and every rule is needed for that."""

from collections.abc import Callable
from typing import Any

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.message import Reference
from priocast.core.protocol import Packet
from priocast.protocols.agreement.consensus import (
    PATIENCE_NS,
    Accept,
    Accepted,
    Consensus,
    Prepare,
    Promise,
    Value,
    Vote,
)
from protocols.consensus_group import INSTANCES, ConsensusViolation, Schedule, hold, rolled

ONE: Value = (Reference(A, 0, 0, 1),)
TWO: Value = (Reference(B, 0, 0, 1),)


@pytest.mark.parametrize("first", range(0, 5_000, 1_000))
def test_members_agree_on_what_was_proposed_and_come_to_an_end_when_faults_do(first: int) -> None:
    for seed in range(first, first + 1_000):
        council = hold(rolled(seed))
        assert len({tuple(member.known) for member in council.members.values()}) == 1, seed
        assert all(len(member.known) == INSTANCES for member in council.members.values()), seed


def test_without_faults_the_first_member_leads_all_the_time() -> None:
    council = hold(Schedule(3, []))
    assert council.members[A].consensus.leads
    assert {member.consensus.ballot for member in council.members.values()} == {0}


def test_what_everybody_knows_is_forgotten() -> None:
    council = hold(Schedule(3, []))
    kept = [len(member.consensus._votes) for member in council.members.values()]
    assert max(kept) <= 3, "the last instance, and the one before, which not all were known to know"


class _Lone:
    """One member, and what it says."""

    def __init__(self, me: int = 0) -> None:
        self.said: list[tuple[str, Packet]] = []
        self.decisions: list[Value] = []
        members = (A, B, C)
        self.consensus = Consensus(
            members[me],
            members,
            lambda to, packet: self.said.append((to.name, packet)),
            lambda packet: self.said.append(("each", packet)),
            self.decisions.append,
        )


class TestTheLeader:
    def test_the_first_one_needs_no_promises_and_proposes_one_value_at_a_time(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.propose(lambda: TWO)
        assert lone.said == [("each", Accept(0, 0, ONE, 0))]

    def test_it_has_nothing_to_propose_and_says_nothing(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ())
        assert lone.said == []

    def test_a_majority_decides_and_the_third_one_changes_nothing(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.receive(B, Accepted(0, 0, 0))
        assert lone.decisions == []
        lone.consensus.receive(C, Accepted(0, 0, 0))
        assert lone.decisions == [ONE]
        lone.consensus.receive(A, Accepted(0, 0, 0))
        assert lone.decisions == [ONE]

    def test_who_takes_over_proposes_the_value_of_the_highest_ballot(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.take_over()
        assert lone.said.pop() == ("each", Prepare(2, 0))
        lone.consensus.receive(A, Promise(2, 0, (Vote(0, 0, ONE),)))
        assert not lone.consensus.leads
        lone.consensus.receive(B, Promise(2, 0, (Vote(0, 1, TWO),)))
        assert lone.consensus.leads
        lone.consensus.propose(lambda: ())
        assert lone.said == [("each", Accept(2, 0, TWO, 0))]

    def test_promises_of_an_earlier_ballot_elect_nobody(self) -> None:
        lone = _Lone(me=1)
        lone.consensus.take_over()
        lone.consensus.take_over()
        lone.consensus.receive(A, Promise(1, 0, ()))
        lone.consensus.receive(C, Promise(1, 0, ()))
        assert not lone.consensus.leads
        assert lone.consensus.ballot == 4

    def test_what_another_leader_has_told_is_not_told_again(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.receive(B, Accepted(0, 0, 0))
        lone.consensus.decided(ONE)
        lone.consensus.receive(C, Accepted(0, 0, 0))
        assert lone.decisions == []

    def test_votes_of_an_earlier_ballot_decide_nothing(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.take_over()
        for member in (B, C):
            lone.consensus.receive(member, Promise(3, 0, ()))
        lone.consensus.propose(lambda: TWO)
        lone.consensus.receive(B, Accepted(0, 0, 0))
        lone.consensus.receive(C, Accepted(3, 0, 0))
        assert lone.decisions == []
        lone.consensus.receive(B, Accepted(3, 0, 0))
        assert lone.decisions == [TWO]

    def test_a_later_ballot_ends_its_reign(self) -> None:
        lone = _Lone()
        lone.consensus.receive(B, Prepare(1, 0))
        assert not lone.consensus.leads
        lone.said.clear()
        lone.consensus.propose(lambda: ONE)
        assert lone.said == []


class TestAMember:
    def test_it_promises_to_accept_nothing_of_an_earlier_ballot(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.receive(B, Prepare(1, 0))
        assert lone.said == [("b", Promise(1, 0, ()))]
        lone.consensus.receive(A, Accept(0, 0, ONE, 0))
        lone.consensus.receive(A, Prepare(0, 0))
        assert len(lone.said) == 1

    def test_it_tells_a_new_leader_what_it_has_accepted_and_what_was_decided(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.decided(ONE)
        lone.consensus.receive(A, Accept(0, 1, TWO, 0))
        lone.said.clear()
        lone.consensus.receive(B, Prepare(1, 0))
        assert lone.said == [("b", Promise(1, 1, (Vote(0, 1 << 62, ONE), Vote(1, 0, TWO))))]

    def test_it_forgets_what_everybody_knows_and_nothing_that_it_lacks_itself(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.decided(ONE)
        lone.consensus.receive(A, Accept(0, 1, TWO, 5))
        assert lone.consensus.value_of(0) is None
        lone.said.clear()
        lone.consensus.receive(B, Prepare(1, 0))
        assert lone.said == [("b", Promise(1, 1, (Vote(1, 0, TWO),)))]

    @pytest.mark.parametrize("packet", [Prepare(1, 0), Accept(1, 0, ONE, 0)], ids=["prepare", "accept"])
    def test_it_knows_who_leads_in_which_ballot(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="c#1 leads in ballot 1, which is for b#1 to lead"):
            _Lone().consensus.receive(C, packet)

    def test_it_is_the_more_patient_the_further_it_is_from_the_leader_and_with_every_ballot(self) -> None:
        assert [_Lone(me).consensus.patience_ns // PATIENCE_NS for me in range(3)] == [3, 1, 2]
        lone = _Lone(me=2)
        lone.consensus.receive(B, Prepare(1, 0))
        assert lone.consensus.patience_ns == 2 * PATIENCE_NS
        lone.consensus.receive(B, Prepare(10, 0))
        assert lone.consensus.patience_ns == 64 * PATIENCE_NS, "there is an end to it"
        lone.consensus.decided(ONE)
        assert lone.consensus.patience_ns == PATIENCE_NS


def a_member_accepts_whatever_it_promised(patch: pytest.MonkeyPatch) -> None:
    def on_accept(self: Consensus, sender: Any, accept: Accept) -> None:
        promised, self._ballot = self._ballot, min(self._ballot, accept.ballot)
        original(self, sender, accept)
        self._ballot = max(promised, self._ballot)

    original = Consensus._on_accept
    patch.setattr(Consensus, "_on_accept", on_accept)


def a_new_leader_proposes_what_it_likes(patch: pytest.MonkeyPatch) -> None:
    def be_elected(self: Consensus) -> None:
        original(self)
        self._may_be_decided = {}

    original = Consensus._be_elected
    patch.setattr(Consensus, "_be_elected", be_elected)


def a_new_leader_takes_the_value_of_any_ballot(patch: pytest.MonkeyPatch) -> None:
    def be_elected(self: Consensus) -> None:
        original(self)
        for promise in self._promises.values():
            self._may_be_decided |= {vote.instance: vote for vote in promise.votes}

    original = Consensus._be_elected
    patch.setattr(Consensus, "_be_elected", be_elected)


def half_of_the_members_are_enough(patch: pytest.MonkeyPatch) -> None:
    def init(self: Consensus, *given: Any) -> None:
        original(self, *given)
        self._majority = (len(self._members) + 1) // 2

    original = Consensus.__init__
    patch.setattr(Consensus, "__init__", init)


def a_member_forgets_what_it_knows_itself(patch: pytest.MonkeyPatch) -> None:
    def on_accept(self: Consensus, sender: Any, accept: Accept) -> None:
        original(self, sender, Accept(accept.ballot, accept.instance, accept.references, self.instance))

    original = Consensus._on_accept
    patch.setattr(Consensus, "_on_accept", on_accept)


def nobody_else_takes_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consensus, "take_over", lambda *_: None)


MUTANTS = [
    (a_member_accepts_whatever_it_promised, "Agreement"),
    (a_new_leader_proposes_what_it_likes, "Agreement"),
    (a_new_leader_takes_the_value_of_any_ballot, "Agreement"),
    (half_of_the_members_are_enough, "Agreement"),
    (a_member_forgets_what_it_knows_itself, "Agreement"),
    (nobody_else_takes_over, "Termination"),
]


def _broken_by(schedule: Schedule) -> str:
    try:
        hold(schedule)
    except ConsensusViolation as broken:
        return broken.property_name
    return ""


@pytest.mark.parametrize(("mutate", "promise"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_every_rule_is_needed(
    mutate: Callable[[pytest.MonkeyPatch], None], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(_broken_by(rolled(seed)) == promise for seed in range(5_000))
