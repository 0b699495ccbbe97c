"""Every rule of the qualities of service is needed: without it a named case fails, or a promise is broken.

A row says from which seed on the broken promise is looked for. A few seeds are tried, so that the row
outlives small changes.
"""

from typing import NamedTuple

import pytest

from priocast.core.errors import Rejected
from priocast.core.guarantees import (
    AT_LEAST,
    DELIVERY,
    SERVICE_CAUSAL_ORDER,
    SERVICE_FIFO_ORDER,
    SERVICE_TOTAL_ORDER,
    UNANIMITY,
)
from priocast.core.quality import ATOMIC, CAUSAL, RELIABLE, TIGHT, Quality, at_least, best_effort, delta
from services import mutants
from services.cases import CASES
from services.mutants import Mutant
from services.trials import broken, run_trial

SEEDS_TRIED = 15
NO_REJECTION = "no rejection of correct members"
NO_SUSPICION = "no suspicion of correct members"


class CaseCatch(NamedTuple):
    """A mutant and the case that fails with it."""

    mutant: Mutant
    case: str


BY_CASE = [
    CaseCatch(mutants.acks_of_any_retry_count, "xamp-late-ack-old-retry"),
    CaseCatch(mutants.a_retry_keeps_the_position, "xamp-retry-moves"),
    CaseCatch(mutants.the_monitor_ignores_retries, "xamp-monitor-mixed-retries"),
    CaseCatch(mutants.the_monitor_ignores_what_was_accepted, "xamp-monitor-after-partial-accept"),
    CaseCatch(mutants.every_question_is_answered_with_accept, "xamp-decision-after-reject"),
    CaseCatch(mutants.an_unaccepted_head_does_not_block, "xamp-unaccepted-head-blocks"),
    CaseCatch(mutants.pending_is_answered_with_reject, "xamp-decision-while-pending"),
    CaseCatch(mutants.tight_has_a_single_lock, "xamp-two-tight-locks"),
    CaseCatch(mutants.rejections_do_not_count, "xamp-decision-after-reject"),
    CaseCatch(mutants.decisions_are_sent_once_and_nobody_asks, "xamp-unaccepted-head-blocks"),
]


class PromiseCatch(NamedTuple):
    """A mutant and the promise that it breaks in some run of a quality."""

    mutant: Mutant
    quality: Quality
    bounded: bool
    seed: int
    broken: str


BY_PROMISE = [
    PromiseCatch(mutants.rejections_of_unknown_messages_are_not_answered, TIGHT, True, 16, NO_SUSPICION),
    PromiseCatch(mutants.decided_messages_are_queued_again, ATOMIC, False, 21, NO_REJECTION),
    PromiseCatch(mutants.decisions_are_sent_once_and_nobody_asks, ATOMIC, True, 0, UNANIMITY),
    PromiseCatch(mutants.recipients_do_not_transmit, RELIABLE, False, 1, UNANIMITY),
    PromiseCatch(mutants.the_sender_counts_as_a_recipient, at_least(2), True, 1, AT_LEAST),
    PromiseCatch(mutants.fifo_does_not_wait, RELIABLE, True, 3, SERVICE_FIFO_ORDER),
    PromiseCatch(mutants.causes_are_not_waited_for, CAUSAL, True, 0, SERVICE_CAUSAL_ORDER),
    PromiseCatch(mutants.histories_forget_what_is_on_its_way, CAUSAL, True, 0, SERVICE_CAUSAL_ORDER),
    PromiseCatch(mutants.gaps_are_not_asked_about, best_effort(2), True, 10, DELIVERY),
    PromiseCatch(mutants.delta_does_not_wait, delta(120), True, 0, SERVICE_TOTAL_ORDER),
    PromiseCatch(mutants.messages_are_sent_once, RELIABLE, True, 0, UNANIMITY),
]


def _name(row: CaseCatch | PromiseCatch) -> str:
    return row.mutant.__name__


@pytest.mark.parametrize("row", BY_CASE, ids=_name)
def test_a_case_detects_the_mutant(row: CaseCatch, monkeypatch: pytest.MonkeyPatch) -> None:
    row.mutant(monkeypatch)
    assert CASES[row.case]()


def test_every_case_detects_a_mutant() -> None:
    assert {row.case for row in BY_CASE} == set(CASES)


@pytest.mark.parametrize("row", BY_PROMISE, ids=_name)
def test_a_promise_detects_the_mutant(row: PromiseCatch, monkeypatch: pytest.MonkeyPatch) -> None:
    row.mutant(monkeypatch)
    assert any(row.broken in _broken(row, row.seed + more) for more in range(SEEDS_TRIED))


def _broken(row: PromiseCatch, seed: int) -> set[str]:
    """The promises that the run with this seed breaks."""
    try:
        lan = run_trial(row.quality, seed, bounded=row.bounded)
    except Rejected:
        return {NO_REJECTION}
    suspected = {NO_SUSPICION} if row.bounded and lan.suspected & set(lan.alive) else set()
    return suspected | broken(lan)
