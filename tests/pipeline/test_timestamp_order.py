"""Timestamp order on Spark: it holds for runs of the adaptive order, and each property has a mutant."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from pipeline.sample_runs import SampleRun
from pipeline.stamp_oracle import violations_of_stamps, with_wrong_stamps
from priocast.core.guarantees import TIMESTAMP_ORDER
from priocast.pipeline.checks.catalogue import STAMP_CHECK
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace
from priocast.pipeline.verdicts import Verdict, judge
from priocast.simulation.choice import Choice
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import manifest_of
from priocast.trace.schema import BROADCAST, DELIVERED, MessageRow, TraceRow
from simulation.scenarios import group

pytestmark = pytest.mark.spark

SEEDS = range(24)
Damage = Callable[[list[TraceRow]], list[TraceRow]]


def calm() -> SampleRun:
    """Single messages of three members, far apart."""
    run = run_scenario(group((12, 12, 12), rate_per_second=100, order="adaptive"))
    assert run.violations == []
    return SampleRun(manifest_of(run), run.rows)


def simulated(seed: int) -> SampleRun:
    choice = Choice("adaptive", "primary" if seed % 2 == 0 else "partitionable")
    run = run_scenario(generate_scenario(seed, choice))
    assert run.violations == []
    return SampleRun(manifest_of(run), run.rows)


def _delivered(rows: list[TraceRow], member: str) -> list[MessageRow]:
    found = [row for row in rows if isinstance(row, MessageRow)]
    return [row for row in found if row.event == DELIVERED and row.member == member]


def _replaced(rows: list[TraceRow], old: MessageRow, **changes: object) -> list[TraceRow]:
    return [row._replace(**changes) if row is old else row for row in rows]  # type: ignore[arg-type]


def a_stamp_is_lower_than_the_one_before(rows: list[TraceRow]) -> list[TraceRow]:
    before, row, *_ = _delivered(rows, "b")[5:]
    return _replaced(rows, row, stamp_number=before.stamp_number - 1, distribution=before.distribution)


def two_messages_have_one_stamp(rows: list[TraceRow]) -> list[TraceRow]:
    """The last message of one member's record and that of another's: nobody steps back."""
    last, other = _delivered(rows, "a")[-1], _delivered(rows, "b")[-2]
    rows = [row for row in rows if row is not _delivered(rows, "b")[-1]]
    return _replaced(rows, other, stamp_number=last.stamp_number, distribution=last.distribution)


def a_message_has_two_stamps(rows: list[TraceRow]) -> list[TraceRow]:
    last = _delivered(rows, "c")[-1]
    return _replaced(rows, last, stamp_number=last.stamp_number + 100)


def a_message_has_a_lower_stamp_than_what_its_sender_knew(rows: list[TraceRow]) -> list[TraceRow]:
    """The broadcast of the first message is recorded after all deliveries of its sender but its own."""
    first = _delivered(rows, "a")[0]
    broadcast = next(
        row
        for row in rows
        if isinstance(row, MessageRow)
        and row.event == BROADCAST
        and (row.sender, row.level, row.first) == (first.sender, first.level, first.first)
    )
    last = [row for row in rows if row.member == first.sender][-1]
    return _replaced(rows, broadcast, step=last.step + 1)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "lower": (a_stamp_is_lower_than_the_one_before, "after a greater one"),
    "shared": (two_messages_have_one_stamp, "have the stamp"),
    "two": (a_message_has_two_stamps, "has the stamps"),
    "acausal": (
        a_message_has_a_lower_stamp_than_what_its_sender_knew,
        "after it had delivered a greater one",
    ),
}


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Verdict]]:
    directory: Path = tmp_path_factory.mktemp("stamps")
    good = calm()
    runs = [good.named("calm"), simulated(3).named("partitioned")]
    runs += [
        SampleRun(good.manifest, damage(list(good.rows))).named(name) for name, (damage, _) in DAMAGES.items()
    ]
    for run in runs:
        run.write_whole(directory)
    with load_trace(open_runs(spark, directory)) as trace:
        yield {verdict.run: verdict for verdict in judge(trace, checks=[STAMP_CHECK])}


@pytest.mark.parametrize("name", ["calm", "partitioned"])
def test_it_holds_in_runs_of_the_adaptive_order(verdicts: dict[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.guarantee == TIMESTAMP_ORDER
    assert (verdict.holds, verdict.promised) == (True, True), verdict.examples
    assert verdict.examined > 0


@pytest.mark.parametrize("name", DAMAGES)
def test_each_property_has_a_mutant(verdicts: dict[str, Verdict], name: str) -> None:
    said = [violation.summary for violation in verdicts[name].examples]
    assert any(DAMAGES[name][1] in summary for summary in said), said


def test_it_finds_as_many_violations_as_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    expected = {}
    for seed in SEEDS:
        run = simulated(seed).named(f"seed-{seed}")
        damaged = SampleRun(run.manifest, with_wrong_stamps(run.rows, Random(seed)))
        damaged.write_whole(tmp_path)
        expected[f"seed-{seed}"] = violations_of_stamps(damaged.rows)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        found = {verdict.run: verdict.violations for verdict in judge(trace, checks=[STAMP_CHECK])}
    assert found == expected
    assert sum(count > 0 for count in expected.values()) > len(SEEDS) // 2, "most damages are violations"
