"""Deliberate faults in the agreement on sets; those in its consensus are with the tests of that."""

from functools import partial
from typing import Any

import pytest

from priocast.core.errors import PeerFault
from priocast.core.guarantees import (
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    LIVENESS,
    PRIORITY,
    VIEW_SYNCHRONY,
)
from priocast.core.protocol import Packet, PacketId
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict
from priocast.protocols.agreement import sets as agreement_sets
from priocast.protocols.agreement.consensus import Consensus
from priocast.protocols.agreement.consensus_packets import SetDecision
from priocast.protocols.agreement.sets import AgreementSets, _UndecidedMessages
from priocast.protocols.flow.paced import PacedProtocol
from protocols import orders, test_agreement_sets
from protocols.mutants import (
    AGEING,
    FLUSH,
    PLAIN,
    STRICT,
    Mutant,
    Patch,
    Twin,
    check_found_in_schedules,
    check_schedules_find,
    check_script_finds,
    check_single_test_finds,
    check_view_sequences_find,
    name_of,
)
from protocols.shared_mutants import sorted_by
from protocols.trusting import trusting


def a_set_is_not_put_in_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_UndecidedMessages, "_precedence", lambda _, batch: (batch.arrival, 0, 0))


def a_set_is_in_the_reverse_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_UndecidedMessages, "_precedence", lambda _, batch: (-batch.arrival, 0, 0))


def the_plain_twin_reverses_a_sender(patch: pytest.MonkeyPatch) -> None:
    def precedence(self: _UndecidedMessages, batch: Any) -> tuple[int, int, int]:
        return 0, self._sender_ranks[batch.reference.sender], -batch.arrival

    patch.setattr(_UndecidedMessages, "_precedence", precedence)


def a_full_set_has_what_came_first(patch: pytest.MonkeyPatch) -> None:
    sorted_by(patch, FirstInFirstOut(), _UndecidedMessages)


def a_full_set_has_what_is_most_urgent(patch: pytest.MonkeyPatch) -> None:
    """Whatever the policy against starvation."""
    sorted_by(patch, Strict(), _UndecidedMessages)


def what_is_decided_is_proposed_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_UndecidedMessages, "_is_decided", lambda *_: False)


def decisions_are_applied_as_they_arrive(patch: pytest.MonkeyPatch) -> None:
    def on_decision(
        self: AgreementSets, sender: Any, decision: SetDecision, packet_id: PacketId, now: int
    ) -> None:
        self._on_next_decision(sender, decision, packet_id)

    patch.setattr(AgreementSets, "_on_decision", on_decision)


def a_leader_orders_what_is_accepted_without_a_decision(patch: pytest.MonkeyPatch) -> None:
    """Only the leader knows, so members that continue without it order otherwise."""

    def send_decision(self: AgreementSets, value: Any) -> None:
        decision = SetDecision(self._consensus.instance, self._position_decided, value)
        self._on_decision(self.me, decision, (0, 0), 0)
        self._append_decided()
        original(self, value)

    original = AgreementSets._send_decision
    patch.setattr(AgreementSets, "_send_decision", send_decision)


def decisions_are_not_kept_for_the_end_of_the_view(patch: pytest.MonkeyPatch) -> None:
    def send_all(self: AgreementSets, packet: Packet) -> None:
        if isinstance(packet, SetDecision):
            self.send_each(packet)
        else:
            original(self, packet)

    original = AgreementSets.send_all
    patch.setattr(AgreementSets, "send_all", send_all)
    patch.setattr(SetDecision, "TO_ALL", False)


def nobody_decides(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consensus, "propose", lambda *_: None)


def nobody_takes_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consensus, "take_over", lambda *_: None)


def there_are_no_shares(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PacedProtocol, "_room", lambda *_: 1_000)


IN_SCHEDULES: list[Mutant] = [
    (a_set_is_not_put_in_order, (PRIORITY,)),
    (trusting(a_set_is_in_the_reverse_order), (FIFO_AMONG_EQUALS,)),
    (trusting(what_is_decided_is_proposed_again), (LIVENESS,)),
    (nobody_decides, (LIVENESS,)),
    (there_are_no_shares, (BOUNDED_WINDOW,)),
]

IN_VIEW_SEQUENCES: list[Mutant] = [
    (trusting(a_leader_orders_what_is_accepted_without_a_decision), (VIEW_SYNCHRONY,)),
    (decisions_are_not_kept_for_the_end_of_the_view, (VIEW_SYNCHRONY,)),
]

IN_FULL_SETS: list[tuple[Patch, Twin]] = [
    (a_full_set_has_what_came_first, STRICT),
    (a_full_set_has_what_is_most_urgent, AGEING),
    (a_full_set_has_what_is_most_urgent, FLUSH),
]

IN_SCRIPTS: list[tuple[Patch, str]] = [
    (a_set_is_not_put_in_order, "sets-priority-order"),
    (nobody_takes_over, "sets-silent-leader"),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedules_find(mutant, "agreement-sets", monkeypatch)


@pytest.mark.parametrize(("mutate", "twin"), IN_FULL_SETS, ids=["strict", "ageing", "flush"])
def test_the_schedules_find_what_is_wrong_in_a_full_set(
    mutate: Patch, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement_sets, "REFERENCES_MAX", 1)
    mutate(monkeypatch)
    check_found_in_schedules("agreement-sets", (PRIORITY,), twin)


@pytest.mark.parametrize("policy", [orders.AGEING, orders.FLUSH], ids=str)
def test_the_policy_against_starvation_is_needed(policy: Starvation, monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_agreement_sets.TestASet().test_what_has_waited_long_enough_fits_before_what_is_urgent
    test = partial(case, policy, monkeypatch)
    check_single_test_finds(a_full_set_has_what_is_most_urgent, test, monkeypatch)


def test_the_schedules_find_a_plain_set_that_is_not_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting(the_plain_twin_reverses_a_sender)(monkeypatch)
    check_found_in_schedules("agreement-sets", (FIFO_AMONG_EQUALS,), PLAIN)


@pytest.mark.parametrize("mutant", IN_VIEW_SEQUENCES, ids=name_of)
def test_view_sequences_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_view_sequences_find(mutant, "agreement-sets", monkeypatch)


def test_the_order_of_decisions_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_agreement_sets.TestDecisions().test_they_are_applied_in_order_when_the_messages_have_arrived
    fault = "a#1 decides about position 41; expected 40"
    check_single_test_finds(decisions_are_applied_as_they_arrive, case, monkeypatch, PeerFault, fault)


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_a_script_finds_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(mutate, script, monkeypatch)
