"""Deliberate faults in the agreement on a proposed order; most are what figure 5 does at its word."""

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
    TOTAL_ORDER,
)
from priocast.core.message import Batch
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict
from priocast.protocols.agreement.proposal import AgreementProposal, _Round
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.references import Named, NamedMessages
from protocols import orders, test_agreement_proposal
from protocols.mutants import (
    AGEING,
    FLUSH,
    OWN_FAULT,
    PEER_FAULT,
    Mutant,
    Patch,
    Twin,
    found_in_schedules,
    name_of,
    schedules_find,
    script_finds,
    single_test_finds,
)
from protocols.trusting import trusting


def a_round_begins_with_the_answers_and_votes_of_the_last(patch: pytest.MonkeyPatch) -> None:
    """`proposal-second-round`."""

    def init(self: _Round, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        self.answers, self.votes = answers, votes

    original = _Round.__init__
    answers: dict[Any, Any] = {}
    votes: dict[Any, Any] = {}
    patch.setattr(_Round, "__init__", init)


def every_further_answer_lets_the_starter_propose_again(patch: pytest.MonkeyPatch) -> None:
    """`proposal-extra-response`."""

    def propose(self: AgreementProposal, current: _Round) -> None:
        original(self, current)
        current.is_proposed = len(current.answers) == len(self.view.members)

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

    def next_ones(self: NamedMessages) -> Iterator[tuple[Named, Any, list[Batch]]]:
        missing = [place for place in self._places if not self._store.has(place.reference)]
        self._places = deque(place for place in self._places if place not in missing)
        yield from original(self)
        self._places.extend(missing)

    original = NamedMessages.next_ones
    patch.setattr(NamedMessages, "next_ones", next_ones)


def a_proposal_is_turned_round(patch: pytest.MonkeyPatch) -> None:
    def named(self: NamedMessages, place: Named) -> None:
        self._places.appendleft(place)

    patch.setattr(NamedMessages, "named", named)


def a_starter_that_found_nothing_to_propose_waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    def propose(self: AgreementProposal, current: _Round) -> None:
        original(self, current)
        current.is_open = True

    original = AgreementProposal._propose
    patch.setattr(AgreementProposal, "_propose", propose)
    patch.setattr(AgreementProposal, "_find_common", lambda *_: None)


def a_late_question_is_never_answered(patch: pytest.MonkeyPatch) -> None:
    """Whoever lacks something of what the starter has answers later; a majority may be waiting for that."""

    def on_data(self: AgreementProposal, sender: Any, batches: Any, now: int) -> None:
        self._question = None
        original(self, sender, batches, now)

    original = AgreementProposal._on_data
    patch.setattr(AgreementProposal, "_on_data", on_data)


def what_came_first_is_proposed_first(patch: pytest.MonkeyPatch) -> None:
    _ranked_by(FirstInFirstOut(), patch)


def what_is_most_urgent_is_proposed_first(patch: pytest.MonkeyPatch) -> None:
    """Whatever the policy against starvation."""
    _ranked_by(Strict(), patch)


def _ranked_by(policy: Starvation, patch: pytest.MonkeyPatch) -> None:
    def init(self: AgreementProposal, *given: Any) -> None:
        original(self, *given)
        self._common._rank = policy.rank

    original = AgreementProposal.__init__
    patch.setattr(AgreementProposal, "__init__", init)


def what_comes_later_makes_the_others_wait_anew(patch: pytest.MonkeyPatch) -> None:
    """Waiting counts from when a message came, and not from when it is common."""

    def find_common(self: AgreementProposal, current: _Round) -> None:
        latest = max((each.at for each in self._received), default=0)
        self._received = deque(each._replace(at=latest) for each in self._received)
        original(self, current)

    original = AgreementProposal._find_common
    patch.setattr(AgreementProposal, "_find_common", find_common)


def there_is_no_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grants, "of_level", lambda *_: 1_000)


DOUBLED = (INTEGRITY, PEER_FAULT, OWN_FAULT)

IN_SCHEDULES: list[Mutant] = [
    (trusting(every_further_answer_lets_the_starter_propose_again), (LIVENESS,)),
    (what_is_ordered_is_ordered_again, DOUBLED),
    (a_proposal_is_turned_round, (FIFO_AMONG_EQUALS, TOTAL_ORDER, PEER_FAULT)),
    (what_came_first_is_proposed_first, (PRIORITY,)),
    (a_starter_that_found_nothing_to_propose_waits_for_ever, (LIVENESS,)),
    (a_late_question_is_never_answered, (LIVENESS,)),
    (there_is_no_window, (BOUNDED_WINDOW,)),
]

AGAINST_STARVATION = [what_is_most_urgent_is_proposed_first, what_comes_later_makes_the_others_wait_anew]

IN_SCRIPTS: list[tuple[Patch, str]] = [
    (a_round_begins_with_the_answers_and_votes_of_the_last, "proposal-second-round"),
    (votes_of_another_round_count, "proposal-extra-response"),
    (the_starter_is_a_majority, "proposal-extra-response"),
    (a_member_does_not_wait_for_what_it_lacks, "proposal-missing-message"),
    (a_member_does_not_wait_for_what_it_lacks, "proposal-reordered-apply"),
    (there_is_no_window, "proposal-window"),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules_find(mutant, "agreement-proposal", monkeypatch)


@pytest.mark.parametrize("twin", [AGEING, FLUSH], ids=["ageing", "flush"])
@pytest.mark.parametrize("mutate", AGAINST_STARVATION, ids=name_of)
def test_the_schedules_find_a_starter_without_the_policy(
    mutate: Patch, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    found_in_schedules("agreement-proposal", (PRIORITY,), twin)


@pytest.mark.parametrize("policy", [orders.AGEING, orders.FLUSH], ids=str)
@pytest.mark.parametrize("mutate", AGAINST_STARVATION, ids=name_of)
def test_the_policy_against_starvation_is_needed(
    mutate: Patch, policy: Starvation, monkeypatch: pytest.MonkeyPatch
) -> None:
    starter = test_agreement_proposal.TestTheStarter()
    case = starter.test_what_has_waited_long_enough_since_it_came_goes_before_what_is_urgent
    single_test_finds(mutate, partial(case, policy), monkeypatch)


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_a_script_finds_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script_finds(mutate, script, monkeypatch)
