"""The checks of the qualities of service on Spark find what the simulator's checkers find."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipeline.sample_runs import SampleRun
from pipeline.service_runs import DAMAGED, DamagedService, as_run, calm, delay_and_say_so
from priocast.core.guarantees import NON_TRIVIALITY
from priocast.core.quality import QualityKind, delta, parse_quality
from priocast.core.service_promises import PROMISES
from priocast.pipeline.checks.service_catalogue import FINDERS
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import TraceTables, load_trace
from priocast.simulation.checkers.service_history import service_key
from priocast.simulation.service_generator import EVERY_QUALITY, generate_service_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import manifest_of
from priocast.trace.schema import SENT, ServiceRow
from services.judgement import judge_services
from simulation.absences import PINNED_ABSENCES

_PRECISION_NS = 10_000_000


def simulated_runs() -> dict[str, SampleRun]:
    """Runs of some qualities, one of all of them, and those without what a quality does not promise."""
    wanted: dict[str, tuple[tuple[str, ...], int]] = {
        f"quality-{index}": ((each,), 5) for index, each in enumerate(("at-least:b,c", "atomic", "delta:150"))
    }
    wanted["mixed"] = (EVERY_QUALITY, 3)
    for row in PINNED_ABSENCES:
        wanted[f"{row.quality.replace(':', '-')}-{row.seed}"] = ((row.quality,), row.seed)
    found = {}
    for name, (qualities, seed) in wanted.items():
        run = run_scenario(generate_service_scenario(seed, qualities))
        found[name] = SampleRun(manifest_of(run), run.rows).named(name)
    return found


def damaged_runs() -> dict[str, SampleRun]:
    """Each damage in a run of its own."""
    return {
        f"damaged-{index}": as_run(calm(row.quality), f"damaged-{index}").changed(row.damage)
        for index, row in enumerate(DAMAGED)
    }


class Loaded:
    """All runs, and the guarantees that Spark finds broken in each of them.

    `all` are those of any message, `promised` those of messages whose quality promises them.
    """

    def __init__(self, runs: dict[str, SampleRun], trace: TraceTables) -> None:
        assert trace.services is not None
        self.runs = runs
        self.all = {name: set[str]() for name in runs}
        self.promised = {name: set[str]() for name in runs}
        promises_of = {name: _promises_of(run) for name, run in runs.items()}
        for guarantee, (_, find) in FINDERS.items():
            for row in find(trace.services, sf.col("kind").isNotNull()).collect():
                run = row["run"]
                self.all[run].add(guarantee)
                if any(
                    guarantee in promises_of[run].get(each, (NON_TRIVIALITY,)) for each in row["messages"]
                ):
                    self.promised[run].add(guarantee)


def _promises_of(run: SampleRun) -> dict[str, tuple[str, ...]]:
    """What is promised about each message."""
    return {
        "/".join(map(str, service_key(row))): PROMISES[parse_quality(row.quality).kind]
        for row in run.rows
        if isinstance(row, ServiceRow) and row.event == SENT
    }


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    late = as_run(calm(delta(120)), "late").changed(delay_and_say_so)
    runs = {**simulated_runs(), **damaged_runs(), "late": late}
    directory: Path = tmp_path_factory.mktemp("services")
    for run in runs.values():
        run.write_whole(directory)
    with load_trace(open_runs(spark, directory)) as trace:
        yield Loaded(runs, trace)


def test_promises_are_judged_as_the_simulator_does(loaded: Loaded) -> None:
    expected = {
        name: {each.guarantee for each in judge_services(run.rows, _PRECISION_NS)}
        for name, run in loaded.runs.items()
    }
    assert loaded.promised == expected
    assert not any(found for name, found in expected.items() if not name.startswith("damaged"))


def test_what_is_not_promised_is_judged_as_the_simulator_does(loaded: Loaded) -> None:
    """Table 3, both ways: the runs that show what a quality does not promise show it on Spark, too."""
    expected = {
        name: {each.guarantee for each in judge_services(run.rows, _PRECISION_NS, list(QualityKind))}
        for name, run in loaded.runs.items()
    }
    assert loaded.all == expected
    for row in PINNED_ABSENCES:
        assert row.guarantee in loaded.all[f"{row.quality.replace(':', '-')}-{row.seed}"]


@pytest.mark.parametrize("index", range(len(DAMAGED)), ids=lambda index: DAMAGED[index].damage.__name__)
def test_a_damage_breaks_its_promise(loaded: Loaded, index: int) -> None:
    row: DamagedService = DAMAGED[index]
    assert row.guarantee in loaded.promised[f"damaged-{index}"]
    clean = judge_services(calm(row.quality).rows, _PRECISION_NS)
    assert clean == []


def test_every_promise_has_a_damage() -> None:
    assert {row.guarantee for row in DAMAGED} == set(FINDERS)
