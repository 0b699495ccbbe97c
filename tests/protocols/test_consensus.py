"""Consensus: members agree despite loss, reordering and crashes, and every rule is needed for that."""

from collections.abc import Callable
from typing import Any

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.guarantees import AGREEMENT, LIVENESS
from priocast.core.message import Reference
from priocast.core.protocol import Packet
from priocast.protocols import PROTOCOLS
from priocast.protocols.agreement.consensus import DECISION_TIMEOUT_NS, Consensus
from priocast.protocols.agreement.consensus_packets import (
    AcceptedValue,
    ConsensusAccept,
    ConsensusAccepted,
    ConsensusPrepare,
    ConsensusPromise,
    Value,
)
from protocols.harness import Violation
from protocols.lone_consensus import (
    INSTANCES,
    ORDER,
    FaultSchedule,
    LoneConsensus,
    consensus_of,
    hold,
    rolled,
)

ONE: Value = (Reference(A, 0, 0, 1),)
TWO: Value = (Reference(B, 0, 0, 1),)


@pytest.fixture(autouse=True)
def lone_consensus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consensus by itself is not among the orders that one can choose; here it is."""
    monkeypatch.setitem(PROTOCOLS, ORDER, LoneConsensus)


def _parts(schedule: FaultSchedule) -> list[LoneConsensus]:
    """What the members know in the end."""
    group = hold(schedule)
    return [consensus_of(group, name) for name in group.members]


@pytest.mark.parametrize("first", range(0, 3_000, 500))
def test_members_agree_and_terminate_when_faults_end(first: int) -> None:
    for seed in range(first, first + 500):
        members = _parts(rolled(seed))
        assert len({tuple(member.known) for member in members}) == 1, seed
        assert all(len(member.known) == INSTANCES for member in members), seed


def test_without_faults_the_first_member_stays_leader() -> None:
    first, *others = _parts(FaultSchedule(3, []))
    assert first.consensus.is_leader
    assert {member.consensus.ballot for member in (first, *others)} == {0}


def test_decisions_that_all_know_are_forgotten() -> None:
    kept = [len(member.consensus._accepted) for member in _parts(FaultSchedule(3, []))]
    assert max(kept) <= 3, "the last instance, and the one before, which not all were known to know"


class _Lone:
    """One member, and what it sends."""

    def __init__(self, me: int = 0) -> None:
        self.sent: list[tuple[str, Packet]] = []
        self.decisions: list[Value] = []
        members = (A, B, C)
        self.consensus = Consensus(
            members[me],
            members,
            lambda to, packet: self.sent.append((to.name, packet)),
            lambda packet: self.sent.append(("each", packet)),
            self.decisions.append,
        )


class TestTheLeader:
    def test_the_first_one_needs_no_promises_and_proposes_one_value_at_a_time(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.propose(lambda: TWO)
        assert lone.sent == [("each", ConsensusAccept(0, 0, ONE, 0))]

    def test_it_sends_nothing_if_it_has_nothing_to_propose(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ())
        assert lone.sent == []

    def test_a_majority_decides_and_further_members_change_nothing(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.receive(B, ConsensusAccepted(0, 0, 0))
        assert lone.decisions == []
        lone.consensus.receive(C, ConsensusAccepted(0, 0, 0))
        assert lone.decisions == [ONE]
        lone.consensus.receive(A, ConsensusAccepted(0, 0, 0))
        assert lone.decisions == [ONE]

    def test_a_new_leader_proposes_the_value_of_the_highest_ballot(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.take_over()
        assert lone.sent.pop() == ("each", ConsensusPrepare(2, 0))
        lone.consensus.receive(A, ConsensusPromise(2, 0, (AcceptedValue(0, 0, ONE),)))
        assert not lone.consensus.is_leader
        lone.consensus.receive(B, ConsensusPromise(2, 0, (AcceptedValue(0, 1, TWO),)))
        assert lone.consensus.is_leader
        lone.consensus.propose(lambda: ())
        assert lone.sent == [("each", ConsensusAccept(2, 0, TWO, 0))]

    def test_promises_of_an_earlier_ballot_elect_nobody(self) -> None:
        lone = _Lone(me=1)
        lone.consensus.take_over()
        lone.consensus.take_over()
        lone.consensus.receive(A, ConsensusPromise(1, 0, ()))
        lone.consensus.receive(C, ConsensusPromise(1, 0, ()))
        assert not lone.consensus.is_leader
        assert lone.consensus.ballot == 4

    def test_what_another_leader_has_announced_is_not_announced_again(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.receive(B, ConsensusAccepted(0, 0, 0))
        lone.consensus.decided(ONE)
        lone.consensus.receive(C, ConsensusAccepted(0, 0, 0))
        assert lone.decisions == []

    def test_acceptances_of_an_earlier_ballot_decide_nothing(self) -> None:
        lone = _Lone()
        lone.consensus.propose(lambda: ONE)
        lone.consensus.take_over()
        for member in (B, C):
            lone.consensus.receive(member, ConsensusPromise(3, 0, ()))
        lone.consensus.propose(lambda: TWO)
        lone.consensus.receive(B, ConsensusAccepted(0, 0, 0))
        lone.consensus.receive(C, ConsensusAccepted(3, 0, 0))
        assert lone.decisions == []
        lone.consensus.receive(B, ConsensusAccepted(3, 0, 0))
        assert lone.decisions == [TWO]

    def test_a_higher_ballot_deposes_it(self) -> None:
        lone = _Lone()
        lone.consensus.receive(B, ConsensusPrepare(1, 0))
        assert not lone.consensus.is_leader
        lone.sent.clear()
        lone.consensus.propose(lambda: ONE)
        assert lone.sent == []


class TestAMember:
    def test_it_promises_to_accept_nothing_of_an_earlier_ballot(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.receive(B, ConsensusPrepare(1, 0))
        assert lone.sent == [("b", ConsensusPromise(1, 0, ()))]
        lone.consensus.receive(A, ConsensusAccept(0, 0, ONE, 0))
        lone.consensus.receive(A, ConsensusPrepare(0, 0))
        assert len(lone.sent) == 1

    def test_its_promise_has_what_it_accepted_and_what_was_decided(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.decided(ONE)
        lone.consensus.receive(A, ConsensusAccept(0, 1, TWO, 0))
        lone.sent.clear()
        lone.consensus.receive(B, ConsensusPrepare(1, 0))
        assert lone.sent == [
            ("b", ConsensusPromise(1, 1, (AcceptedValue(0, 1 << 62, ONE), AcceptedValue(1, 0, TWO))))
        ]

    def test_it_forgets_what_all_know_but_nothing_that_it_lacks_itself(self) -> None:
        lone = _Lone(me=2)
        lone.consensus.decided(ONE)
        lone.consensus.receive(A, ConsensusAccept(0, 1, TWO, 5))
        assert lone.consensus.value_of(0) is None
        lone.sent.clear()
        lone.consensus.receive(B, ConsensusPrepare(1, 0))
        assert lone.sent == [("b", ConsensusPromise(1, 1, (AcceptedValue(1, 0, TWO),)))]

    @pytest.mark.parametrize(
        "packet", [ConsensusPrepare(1, 0), ConsensusAccept(1, 0, ONE, 0)], ids=["prepare", "accept"]
    )
    def test_it_rejects_a_leader_of_the_wrong_ballot(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="c#1 acts as the leader of ballot 1, which is b#1"):
            _Lone().consensus.receive(C, packet)

    def test_its_timeout_grows_with_the_distance_from_the_leader_and_with_every_ballot(self) -> None:
        assert [_Lone(me).consensus.timeout_ns // DECISION_TIMEOUT_NS for me in range(3)] == [3, 1, 2]
        lone = _Lone(me=2)
        lone.consensus.receive(B, ConsensusPrepare(1, 0))
        assert lone.consensus.timeout_ns == 2 * DECISION_TIMEOUT_NS
        lone.consensus.receive(B, ConsensusPrepare(10, 0))
        assert lone.consensus.timeout_ns == 64 * DECISION_TIMEOUT_NS, "it is bounded"
        lone.consensus.decided(ONE)
        assert lone.consensus.timeout_ns == DECISION_TIMEOUT_NS


def a_member_accepts_whatever_it_promised(patch: pytest.MonkeyPatch) -> None:
    def on_accept(self: Consensus, sender: Any, accept: ConsensusAccept) -> None:
        promised, self._ballot = self._ballot, min(self._ballot, accept.ballot)
        original(self, sender, accept)
        self._ballot = max(promised, self._ballot)

    original = Consensus._on_accept
    patch.setattr(Consensus, "_on_accept", on_accept)


def a_new_leader_ignores_the_promises(patch: pytest.MonkeyPatch) -> None:
    def become_leader(self: Consensus) -> None:
        original(self)
        self._may_be_decided = {}

    original = Consensus._become_leader
    patch.setattr(Consensus, "_become_leader", become_leader)


def a_new_leader_takes_the_value_of_any_ballot(patch: pytest.MonkeyPatch) -> None:
    def become_leader(self: Consensus) -> None:
        original(self)
        for promise in self._promises.values():
            self._may_be_decided |= {each.instance: each for each in promise.accepted}

    original = Consensus._become_leader
    patch.setattr(Consensus, "_become_leader", become_leader)


def half_of_the_members_are_enough(patch: pytest.MonkeyPatch) -> None:
    def init(self: Consensus, *given: Any) -> None:
        original(self, *given)
        self._majority = (len(self._members) + 1) // 2

    original = Consensus.__init__
    patch.setattr(Consensus, "__init__", init)


def a_member_forgets_what_it_knows_itself(patch: pytest.MonkeyPatch) -> None:
    def on_accept(self: Consensus, sender: Any, accept: ConsensusAccept) -> None:
        original(
            self, sender, ConsensusAccept(accept.ballot, accept.instance, accept.references, self.instance)
        )

    original = Consensus._on_accept
    patch.setattr(Consensus, "_on_accept", on_accept)


def nobody_else_takes_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consensus, "take_over", lambda *_: None)


MUTANTS = [
    (a_member_accepts_whatever_it_promised, AGREEMENT),
    (a_new_leader_ignores_the_promises, AGREEMENT),
    (a_new_leader_takes_the_value_of_any_ballot, AGREEMENT),
    (half_of_the_members_are_enough, AGREEMENT),
    (a_member_forgets_what_it_knows_itself, AGREEMENT),
    (nobody_else_takes_over, LIVENESS),
]


def _broken_by(schedule: FaultSchedule) -> str:
    try:
        hold(schedule)
    except Violation as broken:
        return broken.guarantee
    return ""


@pytest.mark.parametrize(("mutate", "promise"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_each_rule_is_needed(
    mutate: Callable[[pytest.MonkeyPatch], None], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(_broken_by(rolled(seed)) == promise for seed in range(5_000))
