"""Deliberate faults in the agreement on a proposed order; most are what figure 5 does, taken literally."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from priocast.core.guarantees import (
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
)
from priocast.core.message import Batch
from priocast.core.protocol import PacketId
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict
from priocast.protocols.agreement.proposal import AgreementProposal, _Round
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages
from protocols import orders, test_agreement_proposal
from protocols.mutants import (
    AGEING,
    FLUSH,
    Mutant,
    Patch,
    Twin,
    check_found_in_schedules,
    check_schedules_find,
    check_script_finds,
    check_single_test_finds,
    name_of,
)
from protocols.shared_mutants import sorted_by
from protocols.trusting import trusting


def a_round_begins_with_the_replies_and_votes_of_the_last(patch: pytest.MonkeyPatch) -> None:
    """`proposal-second-round`."""

    def init(self: _Round, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        self.counts, self.votes = counts, votes

    original = _Round.__init__
    counts: dict[Any, Any] = {}
    votes: dict[Any, Any] = {}
    patch.setattr(_Round, "__init__", init)


def every_further_reply_lets_the_starter_propose_again(patch: pytest.MonkeyPatch) -> None:
    """`proposal-extra-response`."""

    def propose(self: AgreementProposal, current: _Round) -> None:
        original(self, current)
        current.is_proposed = len(current.counts) == len(self.view.members)

    original = AgreementProposal._propose
    patch.setattr(AgreementProposal, "_propose", propose)


def votes_of_another_round_count(patch: pytest.MonkeyPatch) -> None:
    def on_vote(self: AgreementProposal, sender: Any, number: int) -> None:
        original(self, sender, self._round.number)

    original = AgreementProposal._on_vote
    patch.setattr(AgreementProposal, "_on_vote", on_vote)


def the_starter_is_a_majority(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AgreementProposal, "_is_majority", lambda _, count: count > 0)


def what_is_ordered_is_ordered_again(patch: pytest.MonkeyPatch) -> None:
    """The starter does not leave out what an earlier round has ordered."""

    def find_common(self: AgreementProposal, current: _Round) -> None:
        received = deque(self._received)
        original(self, current)
        if current.number == 1:
            self._received = received

    original = AgreementProposal._find_common
    patch.setattr(AgreementProposal, "_find_common", find_common)


def a_member_does_not_wait_for_what_it_lacks(patch: pytest.MonkeyPatch) -> None:
    """`proposal-missing-message`, `proposal-reordered-apply`."""

    def next_ordered(self: ReferencedMessages) -> Iterator[tuple[OrderedReference, Any, list[Batch]]]:
        missing = [place for place in self._references if not self._store.has(place.reference)]
        self._references = deque(place for place in self._references if place not in missing)
        yield from original(self)
        self._references.extend(missing)

    original = ReferencedMessages.next_ordered
    patch.setattr(ReferencedMessages, "next_ordered", next_ordered)


def a_proposal_is_reversed(patch: pytest.MonkeyPatch) -> None:
    def ordered(self: ReferencedMessages, reference: OrderedReference) -> None:
        self._references.appendleft(reference)

    patch.setattr(ReferencedMessages, "ordered", ordered)


def a_starter_that_found_nothing_to_propose_waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    def propose(self: AgreementProposal, current: _Round) -> None:
        original(self, current)
        current.is_open = True

    original = AgreementProposal._propose
    patch.setattr(AgreementProposal, "_propose", propose)
    patch.setattr(AgreementProposal, "_find_common", lambda *_: None)


def a_late_question_gets_no_reply(patch: pytest.MonkeyPatch) -> None:
    """A member that lacks something replies later, and a majority may be waiting for that."""

    def on_data(self: AgreementProposal, sender: Any, batches: Any, packet_id: PacketId, now: int) -> None:
        self._question = None
        original(self, sender, batches, packet_id, now)

    original = AgreementProposal._on_data
    patch.setattr(AgreementProposal, "_on_data", on_data)


def what_came_first_is_proposed_first(patch: pytest.MonkeyPatch) -> None:
    sorted_by(patch, FirstInFirstOut(), AgreementProposal, "_incoming")


def what_is_most_urgent_is_proposed_first(patch: pytest.MonkeyPatch) -> None:
    """Whatever the policy against starvation."""
    sorted_by(patch, Strict(), AgreementProposal, "_incoming")


def a_later_arrival_restarts_the_wait_of_the_others(patch: pytest.MonkeyPatch) -> None:
    """Waiting counts from the arrival of a message, not from when it is common."""

    def find_common(self: AgreementProposal, current: _Round) -> None:
        latest = max((each.at for each in self._received), default=0)
        self._received = deque(each._replace(at=latest) for each in self._received)
        original(self, current)

    original = AgreementProposal._find_common
    patch.setattr(AgreementProposal, "_find_common", find_common)


def there_is_no_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grants, "room", lambda *_: 1_000)


IN_SCHEDULES: list[Mutant] = [
    (trusting(every_further_reply_lets_the_starter_propose_again), (LIVENESS,)),
    (trusting(what_is_ordered_is_ordered_again), (INTEGRITY,)),
    (trusting(a_proposal_is_reversed), (FIFO_AMONG_EQUALS,)),
    (what_came_first_is_proposed_first, (PRIORITY,)),
    (a_starter_that_found_nothing_to_propose_waits_for_ever, (LIVENESS,)),
    (a_late_question_gets_no_reply, (LIVENESS,)),
    (there_is_no_window, (BOUNDED_WINDOW,)),
]

AGAINST_STARVATION = [what_is_most_urgent_is_proposed_first, a_later_arrival_restarts_the_wait_of_the_others]

IN_SCRIPTS: list[tuple[Patch, str]] = [
    (a_round_begins_with_the_replies_and_votes_of_the_last, "proposal-second-round"),
    (votes_of_another_round_count, "proposal-extra-response"),
    (the_starter_is_a_majority, "proposal-extra-response"),
    (a_member_does_not_wait_for_what_it_lacks, "proposal-missing-message"),
    (a_member_does_not_wait_for_what_it_lacks, "proposal-reordered-apply"),
    (there_is_no_window, "proposal-window"),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedules_find(mutant, "agreement-proposal", monkeypatch)


@pytest.mark.parametrize("twin", [AGEING, FLUSH], ids=["ageing", "flush"])
@pytest.mark.parametrize("mutate", AGAINST_STARVATION, ids=name_of)
def test_the_schedules_find_a_starter_without_the_policy(
    mutate: Patch, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found_in_schedules("agreement-proposal", (PRIORITY,), twin)


@pytest.mark.parametrize("policy", [orders.AGEING, orders.FLUSH], ids=str)
@pytest.mark.parametrize("mutate", AGAINST_STARVATION, ids=name_of)
def test_the_policy_against_starvation_is_needed(
    mutate: Patch, policy: Starvation, monkeypatch: pytest.MonkeyPatch
) -> None:
    starter = test_agreement_proposal.TestTheStarter()
    case = starter.test_what_has_waited_long_enough_since_its_arrival_precedes_urgent_messages
    check_single_test_finds(mutate, partial(case, policy), monkeypatch)


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_a_script_finds_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(mutate, script, monkeypatch)
