"""The checks of the qualities of service on Spark find what the simulator's checkers find."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipeline.sample_runs import SampleRun
from pipeline.service_runs import DAMAGED, DamagedService, as_run, calm
from priocast.core.quality import QualityKind
from priocast.pipeline.checks.service_catalogue import FINDERS, SERVICE_CHECKS
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import TraceTables, load_trace
from priocast.pipeline.verdicts import judge
from priocast.simulation.service_judgement import judge_services
from services.test_promises import ABSENT, QUALITIES
from services.trials import run_trial

_PRECISION_NS = 10_000_000
_SEEDS = 2


def trial_runs() -> dict[str, SampleRun]:
    """Random runs of every quality, and those in which something is absent that is not promised."""
    found = {
        f"trial-{index}-{seed}": as_run(run_trial(quality, seed, bounded=True), f"trial-{index}-{seed}")
        for index, quality in enumerate(QUALITIES)
        for seed in range(_SEEDS)
    }
    for index, row in enumerate(ABSENT):
        lan = run_trial(row.quality, row.seed, bounded=row.bounded)
        found[f"absent-{index}"] = as_run(lan, f"absent-{index}")
    qualities = tuple(QUALITIES)
    found["mixed"] = as_run(run_trial(qualities[0], 3, bounded=True, others=qualities[1:]), "mixed")
    return found


def damaged_runs() -> dict[str, SampleRun]:
    """Each damage in a run of its own."""
    return {
        f"damaged-{index}": as_run(calm(row.quality), f"damaged-{index}").changed(row.damage)
        for index, row in enumerate(DAMAGED)
    }


class Loaded:
    """All runs, in memory and on Spark."""

    def __init__(self, runs: dict[str, SampleRun], trace: TraceTables) -> None:
        self.runs = runs
        self.promised = {name: set[str]() for name in runs}
        for verdict in judge(trace, checks=SERVICE_CHECKS):
            if not verdict.holds:
                self.promised[verdict.run].add(verdict.guarantee)
        self.all = {name: set[str]() for name in runs}
        assert trace.services is not None
        for guarantee, (_, find) in FINDERS.items():
            for row in find(trace.services, sf.col("kind").isNotNull()).select("run").distinct().collect():
                self.all[row["run"]].add(guarantee)


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    runs = {**trial_runs(), **damaged_runs()}
    directory: Path = tmp_path_factory.mktemp("services")
    for run in runs.values():
        run.write_whole(directory)
    with load_trace(spark, open_runs(directory)) as trace:
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
    for index, row in enumerate(ABSENT):
        assert row.guarantee in loaded.all[f"absent-{index}"]


@pytest.mark.parametrize("index", range(len(DAMAGED)), ids=lambda index: DAMAGED[index].damage.__name__)
def test_a_damage_breaks_its_promise(loaded: Loaded, index: int) -> None:
    row: DamagedService = DAMAGED[index]
    assert row.guarantee in loaded.promised[f"damaged-{index}"]
    clean = judge_services(calm(row.quality).rows, _PRECISION_NS)
    assert clean == []


def test_every_promise_has_a_damage() -> None:
    assert {row.guarantee for row in DAMAGED} == set(FINDERS)
