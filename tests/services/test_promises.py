"""Table 3, both ways: what a quality promises holds in random runs, and what it does not promise is absent.

A run has 12 messages of random members to all or some of the others, omissions, and crashes. It is on a LAN
with network order and at most two omissions in a row, or on a network that guarantees nothing.
"""

from typing import NamedTuple

import pytest

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
from services.promises import (
    PROMISED,
    Check,
    px7_tightness,
    px8_unanimity,
    px9_at_least,
    px11_total_order,
    px12_causal_order,
    px13_fifo_order,
    violations,
)
from services.trials import Trial, only, run_trial

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
IN_FIFO_ORDER = QUALITIES[:6]
"""These share one order per sender."""


def falsely_suspected(trial: Trial) -> set[str]:
    return {each.name for each in trial.lan.suspected if each in trial.lan.alive}


@pytest.mark.parametrize("quality", QUALITIES, ids=str)
def test_promises_hold_on_a_lan(quality: Quality) -> None:
    for seed in range(SEEDS):
        trial = run_trial(quality, seed, bounded=True, crashes=seed % 3)
        assert violations(trial) == [], f"seed {seed}"
        assert falsely_suspected(trial) == set(), f"seed {seed}"


@pytest.mark.parametrize(
    "quality", [each for each in QUALITIES if each.kind is not QualityKind.DELTA], ids=str
)
def test_promises_hold_on_a_network_that_guarantees_nothing(quality: Quality) -> None:
    for seed in range(SEEDS):
        trial = run_trial(quality, seed, bounded=False, crashes=seed % 3)
        assert violations(trial) == [], f"seed {seed}"


@pytest.mark.parametrize("quality", [ATOMIC, TIGHT], ids=str)
@pytest.mark.parametrize("bounded", [True, False])
def test_promises_hold_if_a_recipient_rejects(quality: Quality, bounded: bool) -> None:
    rejected = 0
    for seed in range(SEEDS):
        trial = run_trial(quality, seed, bounded=bounded, held_max=2)
        assert violations(trial) == [], f"seed {seed}"
        rejected += sum(bool(receipt.rejected) for receipt in trial.lan.receipts.values())
    assert rejected > 0


@pytest.mark.parametrize("bounded", [True, False])
def test_promises_hold_if_all_qualities_are_mixed(bounded: bool) -> None:
    qualities = [each for each in QUALITIES if bounded or each.kind is not QualityKind.DELTA]
    for seed in range(SEEDS):
        trial = run_trial(qualities[0], seed, bounded=bounded, others=tuple(qualities[1:]))
        for quality in qualities:
            assert violations(only(trial, quality)) == [], f"{quality}, seed {seed}"
        assert px13_fifo_order(only(trial, *IN_FIFO_ORDER)) == [], f"seed {seed}"


class Absence(NamedTuple):
    """A promise that a quality does not make, and a run in which it does not hold."""

    quality: Quality
    check: Check
    bounded: bool
    seed: int


ABSENT = [
    Absence(UNRELIABLE, px8_unanimity, True, 0),
    Absence(UNRELIABLE, px11_total_order, True, 1),
    Absence(UNRELIABLE, px12_causal_order, False, 16),
    Absence(best_effort(2), px7_tightness, True, 1),
    Absence(best_effort(2), px8_unanimity, True, 0),
    Absence(best_effort(2), px9_at_least, True, 3),
    Absence(best_effort(2), px11_total_order, True, 1),
    Absence(best_effort(2), px12_causal_order, True, 8),
    Absence(best_effort_to("b"), px7_tightness, True, 0),
    Absence(best_effort_to("b"), px8_unanimity, True, 0),
    Absence(best_effort_to("b"), px9_at_least, False, 77),
    Absence(best_effort_to("b"), px11_total_order, True, 1),
    Absence(best_effort_to("b"), px12_causal_order, True, 8),
    Absence(at_least(2), px7_tightness, True, 0),
    Absence(at_least(2), px8_unanimity, True, 0),
    Absence(at_least(2), px11_total_order, True, 0),
    Absence(at_least(2), px12_causal_order, True, 0),
    Absence(at_least_to("b"), px7_tightness, True, 0),
    Absence(at_least_to("b"), px8_unanimity, True, 1),
    Absence(at_least_to("b"), px11_total_order, True, 0),
    Absence(at_least_to("b"), px12_causal_order, True, 8),
    Absence(RELIABLE, px7_tightness, True, 0),
    Absence(RELIABLE, px11_total_order, True, 0),
    Absence(RELIABLE, px12_causal_order, True, 0),
    Absence(CAUSAL, px7_tightness, True, 0),
    Absence(CAUSAL, px11_total_order, True, 1),
    Absence(ATOMIC, px7_tightness, True, 0),
    Absence(TIGHT, px7_tightness, True, 0),
]


@pytest.mark.parametrize("row", ABSENT, ids=lambda row: f"{row.quality} {row.check.__name__}")
def test_what_is_not_promised_is_absent(row: Absence) -> None:
    assert row.check not in PROMISED[row.quality.kind].values()
    assert row.check(run_trial(row.quality, row.seed, bounded=row.bounded))


def test_every_no_of_table_3_has_a_run() -> None:
    """Tightness of unreliable messages apart: they come at once or never."""
    table = {"Px8": px8_unanimity, "Px11": px11_total_order, "Px12": px12_causal_order}
    missing = [
        f"{quality} {name}"
        for quality in (each.quality for each in ABSENT)
        for name, check in table.items()
        if name not in PROMISED[quality.kind]
        and (quality, check) not in [(each.quality, each.check) for each in ABSENT]
    ]
    assert missing == []
