"""The synthetic traces of the benchmark are valid; SQL and Spark find exactly what is planted in them."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from benchmarks.pipeline_sql import CHECKS, SqlChecks
from benchmarks.pipeline_traces import ADAPTIVE, REORDER, SEQUENCER, TraceShape, faulty_shapes, write_run
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from priocast.core.guarantees import AGREEMENT, INTEGRITY, TOTAL_ORDER, UNIFORMITY
from priocast.pipeline.sources import open_runs
from priocast.pipeline.verdicts import Verdict

ORDERS = (SEQUENCER, REORDER, ADAPTIVE)
DELIVERIES = 4_000
MESSAGES = DELIVERIES // 5
SEED = 1
SHAPES = {
    **{order: TraceShape(DELIVERIES, members=3, segments=2, order=order) for order in ORDERS},
    "many-priorities": TraceShape(DELIVERIES, priorities=256),
    **dict(faulty_shapes(DELIVERIES)),
}
GOOD = [name for name, shape in SHAPES.items() if shape.fault is None]
#: What a fault breaks besides the guarantee that it is planted in.
ALSO_BROKEN = {"repeated": {TOTAL_ORDER}, "member-lost": {UNIFORMITY}}


@dataclass(frozen=True)
class SyntheticRun:
    """A run that is written like those of the other modules, to be checked together with them."""

    shape: TraceShape
    name: str = ""

    def named(self, name: str) -> "SyntheticRun":
        return replace(self, name=name)

    def write_whole(self, directory: Path) -> None:
        write_run(directory / self.name, self.shape, SEED)


def runs_to_check() -> dict[str, SyntheticRun]:
    """All runs."""
    return {name: SyntheticRun(shape) for name, shape in SHAPES.items()}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs, for SQL."""
    found = tmp_path_factory.mktemp("traces")
    for name, shape in SHAPES.items():
        write_run(found / name, shape, SEED)
    return found


@pytest.fixture(scope="module")
def broken(directory: Path) -> dict[str, set[str]]:
    """The guarantees that each run breaks, by SQL."""
    database = SqlChecks(directory, "1GB", 1)
    database.make_tables()
    found: dict[str, set[str]] = {path.name: set() for path in directory.iterdir()}
    for guarantee in CHECKS:
        for run in database.broken_runs(guarantee):
            found[run].add(guarantee)
    return found


@pytest.mark.spark
def test_runs_can_be_opened(spark: SparkSession, directory: Path) -> None:
    stored = open_runs(spark, directory)
    runs = {run.name: run for run in stored.runs}
    files = stored.messages.where(sf.col("run") == SEQUENCER).select("_metadata.file_name").distinct()
    assert files.count() == 6
    assert all(len(run.group_events) >= 3 for run in runs.values())


@pytest.mark.parametrize("run", GOOD)
def test_good_runs_break_nothing(broken: dict[str, set[str]], run: str) -> None:
    assert broken[run] == set()


@pytest.mark.parametrize(("name", "shape"), list(faulty_shapes(DELIVERIES)))
def test_faults_break_what_they_are_planted_in(
    broken: dict[str, set[str]], name: str, shape: TraceShape
) -> None:
    assert shape.fault is not None
    assert broken[name] == {shape.fault.guarantee} | ALSO_BROKEN.get(name, set())


def test_every_fault_breaks_another_guarantee() -> None:
    planted = [shape.fault.guarantee for _, shape in faulty_shapes(DELIVERIES) if shape.fault]
    assert {INTEGRITY, TOTAL_ORDER, AGREEMENT} <= set(planted) == set(CHECKS)


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_spark_finds_what_sql_finds(
    verdicts_by_module: dict[str, list[Verdict]], broken: dict[str, set[str]]
) -> None:
    found: dict[str, set[str]] = {name: set() for name in SHAPES}
    for verdict in verdicts_by_module[__name__]:
        if not verdict.holds:
            found[verdict.run].add(verdict.guarantee)
    assert found == broken


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_all_messages_that_a_member_lacks_are_counted(verdicts_by_module: dict[str, list[Verdict]]) -> None:
    (verdict,) = (
        verdict
        for verdict in verdicts_by_module[__name__]
        if (verdict.run, verdict.guarantee) == ("member-lost", AGREEMENT)
    )
    assert verdict.violations == MESSAGES
    assert {violation.members for violation in verdict.examples} == {("m4#1",)}
