"""Table 3, both ways: what a quality promises holds in random runs, and what it does not promise is absent.

A run has 12 messages of random members to all or some of the others, omissions, and crashes. It is on a LAN
with network order and at most two omissions in a row, or on a network that guarantees nothing.
"""

from typing import NamedTuple

import pytest

from priocast.core.guarantees import (
    AT_LEAST,
    SERVICE_CAUSAL_ORDER,
    SERVICE_TOTAL_ORDER,
    TIGHTNESS,
    UNANIMITY,
)
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    UNRELIABLE,
    Quality,
    QualityKind,
    at_least,
    at_least_to,
    atomic,
    best_effort,
    best_effort_to,
    delta,
)
from priocast.core.service_promises import PROMISES
from services.lan import Lan
from services.trials import broken, run_trial, violations

SEEDS = 10
QUALITIES = [
    UNRELIABLE,
    best_effort(2),
    best_effort_to("b", "c"),
    at_least(2),
    at_least_to("b", "c"),
    RELIABLE,
    CAUSAL,
    ATOMIC,
    atomic(acknowledged=True),
    TIGHT,
    delta(120),
]


def falsely_suspected(lan: Lan) -> set[str]:
    return {each.name for each in lan.suspected if each in lan.alive}


@pytest.mark.parametrize("quality", QUALITIES, ids=str)
def test_promises_hold_on_a_lan(quality: Quality) -> None:
    for seed in range(SEEDS):
        lan = run_trial(quality, seed, bounded=True, crashes=seed % 3)
        assert violations(lan) == [], f"seed {seed}"
        assert falsely_suspected(lan) == set(), f"seed {seed}"


@pytest.mark.parametrize(
    "quality", [each for each in QUALITIES if each.kind is not QualityKind.DELTA], ids=str
)
def test_promises_hold_on_a_network_that_guarantees_nothing(quality: Quality) -> None:
    for seed in range(SEEDS):
        lan = run_trial(quality, seed, bounded=False, crashes=seed % 3)
        assert violations(lan) == [], f"seed {seed}"


@pytest.mark.parametrize("quality", [best_effort(3), at_least(3), RELIABLE, CAUSAL, ATOMIC, TIGHT], ids=str)
@pytest.mark.parametrize("bounded", [True, False])
def test_promises_hold_if_a_recipient_rejects(quality: Quality, bounded: bool) -> None:
    """Nobody fails: who rejected a message whose sender failed is not known."""
    rejected = 0
    for seed in range(SEEDS):
        lan = run_trial(quality, seed, bounded=bounded, held_max=2, crashes=0)
        assert violations(lan) == [], f"seed {seed}"
        assert not bounded or falsely_suspected(lan) == set(), f"seed {seed}"
        rejected += sum(bool(receipt.rejected) for receipt in lan.receipts.values())
    assert rejected > 0


@pytest.mark.parametrize("bounded", [True, False])
def test_promises_hold_if_all_qualities_are_mixed(bounded: bool) -> None:
    qualities = [each for each in QUALITIES if bounded or each.kind is not QualityKind.DELTA]
    for seed in range(SEEDS):
        lan = run_trial(qualities[0], seed, bounded=bounded, others=tuple(qualities[1:]))
        assert violations(lan) == [], f"seed {seed}"


class Absence(NamedTuple):
    """A promise that a quality does not make, and a run in which it does not hold."""

    quality: Quality
    guarantee: str
    bounded: bool
    seed: int


ABSENT = [
    Absence(UNRELIABLE, UNANIMITY, True, 0),
    Absence(UNRELIABLE, SERVICE_TOTAL_ORDER, True, 1),
    Absence(UNRELIABLE, SERVICE_CAUSAL_ORDER, False, 16),
    Absence(best_effort(2), TIGHTNESS, True, 1),
    Absence(best_effort(2), UNANIMITY, True, 0),
    Absence(best_effort(2), AT_LEAST, True, 3),
    Absence(best_effort(2), SERVICE_TOTAL_ORDER, True, 1),
    Absence(best_effort(2), SERVICE_CAUSAL_ORDER, True, 8),
    Absence(best_effort_to("b"), TIGHTNESS, True, 0),
    Absence(best_effort_to("b"), UNANIMITY, True, 0),
    Absence(best_effort_to("b"), AT_LEAST, False, 77),
    Absence(best_effort_to("b"), SERVICE_TOTAL_ORDER, True, 1),
    Absence(best_effort_to("b"), SERVICE_CAUSAL_ORDER, True, 8),
    Absence(at_least(2), TIGHTNESS, True, 0),
    Absence(at_least(2), UNANIMITY, True, 0),
    Absence(at_least(2), SERVICE_TOTAL_ORDER, True, 0),
    Absence(at_least(2), SERVICE_CAUSAL_ORDER, True, 0),
    Absence(at_least_to("b"), TIGHTNESS, True, 0),
    Absence(at_least_to("b"), UNANIMITY, True, 1),
    Absence(at_least_to("b"), SERVICE_TOTAL_ORDER, True, 0),
    Absence(at_least_to("b"), SERVICE_CAUSAL_ORDER, True, 8),
    Absence(RELIABLE, TIGHTNESS, True, 0),
    Absence(RELIABLE, SERVICE_TOTAL_ORDER, True, 0),
    Absence(RELIABLE, SERVICE_CAUSAL_ORDER, True, 0),
    Absence(CAUSAL, TIGHTNESS, True, 0),
    Absence(CAUSAL, SERVICE_TOTAL_ORDER, True, 1),
    Absence(ATOMIC, TIGHTNESS, True, 0),
    Absence(TIGHT, TIGHTNESS, True, 0),
]


@pytest.mark.parametrize("row", ABSENT, ids=lambda row: f"{row.quality} {row.guarantee}")
def test_what_is_not_promised_is_absent(row: Absence) -> None:
    assert row.guarantee not in PROMISES[row.quality.kind]
    lan = run_trial(row.quality, row.seed, bounded=row.bounded)
    assert row.guarantee in broken(lan, kinds=list(QualityKind))
    assert broken(lan) == set()


def test_every_no_of_table_3_has_a_run() -> None:
    """Tightness of unreliable messages apart: they come at once or never."""
    shown = {(row.quality.kind, row.guarantee) for row in ABSENT}
    missing = [
        (kind, guarantee)
        for kind, promised in PROMISES.items()
        for guarantee in PROMISES[QualityKind.DELTA]
        if guarantee not in promised and (kind, guarantee) not in shown
    ]
    assert missing == []
