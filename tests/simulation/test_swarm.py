"""The swarm: every guarantee holds for many seeds, and every kind of fault occurs in them."""

import os

import pytest

from priocast.core.violation import Violation
from priocast.simulation.counters import FAULT_KINDS, TRANSITION_KINDS, Counters
from priocast.simulation.swarm import SeedResult, SwarmSummary, run_swarm, summarise

SEED_COUNT = int(os.environ.get("PRIOCAST_SWARM_SEEDS", "150"))
#: Each kind of fault and of transition must occur in this share of the seeds.
OCCURS_PERCENT_MIN = 1.0


@pytest.fixture(scope="module")
def summary() -> SwarmSummary:
    return summarise(run_swarm(range(SEED_COUNT), jobs=min(4, os.cpu_count() or 1)), seconds=1.0)


@pytest.mark.swarm
def test_no_seed_violates_a_guarantee(summary: SwarmSummary) -> None:
    assert summary.seeds == SEED_COUNT
    assert [str(violation) for violation in summary.violations] == []


@pytest.mark.swarm
@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_fault_occurs_in_a_share_of_the_seeds(summary: SwarmSummary, kind: str) -> None:
    assert summary.fault_percent[kind] >= OCCURS_PERCENT_MIN


@pytest.mark.swarm
@pytest.mark.parametrize("kind", TRANSITION_KINDS)
def test_transition_occurs_in_a_share_of_the_seeds(summary: SwarmSummary, kind: str) -> None:
    assert summary.transition_percent[kind] >= OCCURS_PERCENT_MIN


def result(seed: int, seconds: float, *violations: Violation, frames: int = 0, **occurred: int) -> SeedResult:
    return SeedResult(
        seed=seed,
        digest="",
        violations=violations,
        counters=Counters(frames=frames, settling_ns=frames * 1_000_000_000, occurred=occurred),
        virtual_ns=500_000_000,
        seconds=seconds,
    )


def test_summary_adds_up() -> None:
    violation = Violation(guarantee="Total order", summary="…", run="seed 2")
    results = [
        result(2, 3.0, violation, frames=5),
        result(0, 1.0, frames=7, loss=2, merge=1),
        result(1, 2.0),
        result(3, 0.5, loss=1),
    ]
    summary = summarise(results, seconds=4.0)
    assert (summary.seeds, summary.frames, summary.virtual_seconds) == (4, 12, 2.0)
    assert summary.fault_percent["loss"] == 50 and summary.fault_percent["pause"] == 0
    assert summary.transition_percent["merge"] == 25
    assert [seed for seed, _ in summary.slowest] == [2, 1, 0, 3]
    assert summary.slowest_to_rest[:2] == ((0, 7.0), (2, 5.0))
    assert summary.failed_seeds == (2,) and summary.violations == (violation,)
