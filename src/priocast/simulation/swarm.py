"""The swarm: many seeds, each a run of its own, on as many processor cores as there are to spare.

An outcome is small enough to be sent between processes and kept for a hundred thousand seeds; whoever wants
the rows runs the seed again.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import msgspec

from priocast.simulation.checkers.checker import Violation
from priocast.simulation.counters import FAULT_KINDS, TRANSITION_KINDS, Counters
from priocast.simulation.scenario_generator import ALL_GENERATED, Choice, generate_scenario
from priocast.simulation.simulator import run_scenario

_CHUNK_SEEDS_MAX = 16
_SLOWEST_SHOWN = 5


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one seed came to."""

    seed: int
    digest: str
    violations: tuple[Violation, ...]
    counters: Counters
    virtual_ns: int
    seconds: float


class SwarmSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What all seeds came to.

    `fault_percent` and `transition_percent` say in how many of them each kind of fault, and of transition
    from view to view, occurred; `slowest_to_rest` how many seconds of virtual time it took, after the last
    fault and the last wish, until all was well.
    """

    seeds: int
    seconds: float
    virtual_seconds: float
    broadcasts: int
    deliveries: int
    frames: int
    views: int
    violations: tuple[Violation, ...]
    fault_percent: dict[str, float]
    transition_percent: dict[str, float]
    slowest: tuple[tuple[int, float], ...]
    slowest_to_rest: tuple[tuple[int, float], ...]

    @property
    def failed_seeds(self) -> list[int]:
        """The seeds with a violation."""
        return sorted({violation.seed for violation in self.violations})


def run_seed(seed: int, choice: Choice = ALL_GENERATED) -> SeedResult:
    """Draw and run one seed."""
    started = time.perf_counter()
    run = run_scenario(generate_scenario(seed, choice))
    return SeedResult(
        seed=seed,
        digest=run.digest,
        violations=tuple(run.violations),
        counters=run.counters,
        virtual_ns=run.duration_ns,
        seconds=time.perf_counter() - started,
    )


def run_swarm(seeds: Sequence[int], jobs: int, choice: Choice = ALL_GENERATED) -> Iterator[SeedResult]:
    """SimulatedRun all seeds in `jobs` processes (one: in this one) and yield the outcomes as they come."""
    assert jobs >= 1
    if jobs == 1 or len(seeds) == 1:
        for seed in seeds:
            yield run_seed(seed, choice)
        return
    size = max(1, min(_CHUNK_SEEDS_MAX, len(seeds) // (4 * jobs)))
    chunks = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_run_chunk, chunk, choice) for chunk in chunks]):
            yield from future.result()


def _run_chunk(seeds: Sequence[int], choice: Choice) -> list[SeedResult]:
    return [run_seed(seed, choice) for seed in seeds]


def summarise(outcomes: Iterable[SeedResult], seconds: float) -> SwarmSummary:
    """Add up the outcomes of a swarm that took so many seconds."""
    by_seed = sorted(outcomes, key=lambda outcome: outcome.seed)
    assert by_seed, "a swarm has seeds"
    counts = [outcome.counters for outcome in by_seed]
    slowest = sorted(by_seed, key=lambda outcome: outcome.seconds, reverse=True)[:_SLOWEST_SHOWN]
    restless = sorted(by_seed, key=lambda outcome: outcome.counters.settling_ns, reverse=True)
    return SwarmSummary(
        seeds=len(by_seed),
        seconds=seconds,
        virtual_seconds=sum(outcome.virtual_ns for outcome in by_seed) / 1e9,
        broadcasts=sum(count.broadcasts for count in counts),
        deliveries=sum(count.deliveries for count in counts),
        frames=sum(count.frames for count in counts),
        views=sum(count.views for count in counts),
        violations=tuple(violation for outcome in by_seed for violation in outcome.violations),
        fault_percent=_percent(counts, FAULT_KINDS),
        transition_percent=_percent(counts, TRANSITION_KINDS),
        slowest=tuple((outcome.seed, outcome.seconds) for outcome in slowest),
        slowest_to_rest=tuple(
            (outcome.seed, outcome.counters.settling_ns / 1e9) for outcome in restless[:_SLOWEST_SHOWN]
        ),
    )


def _percent(counts: list[Counters], kinds: Iterable[str]) -> dict[str, float]:
    return {kind: 100 * sum(kind in count.occurred for count in counts) / len(counts) for kind in kinds}
