"""The swarm: runs many seeds, each a run of its own, in parallel processes.

The result of a seed is small enough to be sent between processes and kept for a hundred thousand seeds. To
see the rows of a run, run its seed again.
"""

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from functools import partial

import msgspec

from priocast.core.violation import Violation
from priocast.simulation.choice import ALL_GENERATED, Choice
from priocast.simulation.counters import FAULT_KINDS, TRANSITION_KINDS, Counters
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.simulation.worker_pool import call_in_processes

_CHUNK_SEEDS_MAX = 16
_SLOWEST_SHOWN = 5


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one seed."""

    seed: int
    digest: str
    violations: tuple[Violation, ...]
    counters: Counters
    virtual_ns: int
    seconds: float


class SwarmSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all seeds together.

    `fault_percent` and `transition_percent` say in how many of the seeds each kind of fault, and of
    transition from view to view, occurred. `slowest_to_rest` says how many seconds of virtual time passed,
    after the last fault and the last broadcast, until the run was quiescent. `digest` is that of an only run.
    """

    seeds: int
    seconds: float
    virtual_seconds: float
    broadcasts: int
    deliveries: int
    frames: int
    views: int
    violations: tuple[Violation, ...]
    failed_seeds: tuple[int, ...]
    fault_percent: dict[str, float]
    transition_percent: dict[str, float]
    slowest: tuple[tuple[int, float], ...]
    slowest_to_rest: tuple[tuple[int, float], ...]
    digest: str = ""


def run_seed(seed: int, choice: Choice = ALL_GENERATED) -> SeedResult:
    """Generate and run one seed."""
    started = time.perf_counter()
    return result_of(run_scenario(generate_scenario(seed, choice)), started)


def result_of(run: SimulatedRun, started: float) -> SeedResult:
    """The result of a run that was started at this time of the performance counter."""
    return SeedResult(
        seed=run.scenario.seed,
        digest=run.digest,
        violations=tuple(run.violations),
        counters=run.counters,
        virtual_ns=run.duration_ns,
        seconds=time.perf_counter() - started,
    )


def run_swarm(
    seeds: Sequence[int], jobs: int, choice: Choice = ALL_GENERATED
) -> Generator[SeedResult, None, None]:
    """Run all seeds in `jobs` processes (one: in this one) and yield the results as they come."""
    assert jobs >= 1
    if jobs == 1 or len(seeds) == 1:
        for seed in seeds:
            yield run_seed(seed, choice)
        return
    size = max(1, min(_CHUNK_SEEDS_MAX, len(seeds) // (4 * jobs)))
    chunks = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    calls = [partial(_run_chunk, chunk, choice) for chunk in chunks]
    with closing(call_in_processes(calls, jobs)) as results:
        for of_chunk in results:
            yield from of_chunk


def _run_chunk(seeds: Sequence[int], choice: Choice) -> list[SeedResult]:
    return [run_seed(seed, choice) for seed in seeds]


def summarise(
    results: Iterable[SeedResult], seconds: float, faults: Iterable[str] = FAULT_KINDS
) -> SwarmSummary:
    """Summarise the results of a swarm that took this many seconds, and how often these faults occurred."""
    by_seed = sorted(results, key=lambda result: result.seed)
    assert by_seed, "a swarm has at least one seed"
    counts = [result.counters for result in by_seed]
    slowest = sorted(by_seed, key=lambda result: result.seconds, reverse=True)[:_SLOWEST_SHOWN]
    slowest_to_rest = sorted(by_seed, key=lambda result: result.counters.settling_ns, reverse=True)
    return SwarmSummary(
        seeds=len(by_seed),
        seconds=seconds,
        virtual_seconds=sum(result.virtual_ns for result in by_seed) / 1e9,
        broadcasts=sum(count.broadcasts for count in counts),
        deliveries=sum(count.deliveries for count in counts),
        frames=sum(count.frames for count in counts),
        views=sum(count.views for count in counts),
        violations=tuple(violation for result in by_seed for violation in result.violations),
        failed_seeds=tuple(result.seed for result in by_seed if result.violations),
        fault_percent=_percent(counts, faults),
        transition_percent=_percent(counts, TRANSITION_KINDS),
        slowest=tuple((result.seed, result.seconds) for result in slowest),
        slowest_to_rest=tuple(
            (result.seed, result.counters.settling_ns / 1e9) for result in slowest_to_rest[:_SLOWEST_SHOWN]
        ),
        digest=by_seed[0].digest if len(by_seed) == 1 else "",
    )


def _percent(counts: list[Counters], kinds: Iterable[str]) -> dict[str, float]:
    return {kind: 100 * sum(kind in count.occurred for count in counts) / len(counts) for kind in kinds}
