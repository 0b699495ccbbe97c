"""Six real processes with slow consumers: their queues are reordered, and every promise is kept."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.damages import exchange_positions
from pipeline.reordered_runs import ORDERS
from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import id_of
from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.core.protocol import OrderingOptions
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace
from priocast.pipeline.verdicts import Verdict, judge
from priocast.study.overload import PlannedRun, carry_out
from priocast.study.workload import Workload
from priocast.trace.explanation import explain, find_worst
from priocast.trace.queues import QueueKind
from priocast.trace.recorded_run import open_run
from priocast.trace.run_directory import read_manifest
from priocast.trace.schema import DELIVERED, MessageRow, TraceRow

pytestmark = [pytest.mark.processes, pytest.mark.spark]

SLOW = Workload(members=6, load=3.0, seconds=1.0, handling_us=5_000)
MOVED = "moved"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("processes")
    for order in ORDERS:
        planned = PlannedRun(
            name=order, title=order, workload=SLOW, order=order, options=OrderingOptions(window=256)
        )
        finished = carry_out(planned, directory, lambda _: None)
        assert finished.same_digest
    return directory


@pytest.fixture(scope="module")
def moved(runs: Path) -> tuple[MessageRow, MessageRow]:
    """A copy of the first run in which all members deliver a message behind its less urgent neighbour."""
    recorded = open_run(runs / ORDERS[0])
    rows = [part for row in recorded.messages() for part in _one_by_one(row)]
    in_order = [row for row in rows if row.event == DELIVERED and row.member == "a"]
    urgent, other = next((one, two) for one, two in pairwise(in_order) if one.level > two.level)
    run = SampleRun(read_manifest(runs / ORDERS[0]), exchange_positions([*rows], urgent, other))
    run.changed(lambda rows: _by_step([*recorded.group_events, *rows])).named(MOVED).write_whole(runs)
    return urgent, other


def _by_step(rows: list[TraceRow]) -> list[TraceRow]:
    return sorted(rows, key=lambda row: (row.member, row.incarnation, row.step))


def _one_by_one(row: MessageRow) -> Iterator[MessageRow]:
    """A delivery of several messages as one delivery of each."""
    if row.event != DELIVERED:
        yield row
        return
    for index in range(row.count):
        yield row._replace(first=row.first + index, count=1, position=row.position + index)


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, runs: Path, moved: tuple[MessageRow, MessageRow]) -> list[Verdict]:
    assert moved
    with load_trace(open_runs(spark, runs)) as trace:
        return judge(trace)


@pytest.mark.parametrize("order", ORDERS)
def test_every_promise_is_kept(verdicts: list[Verdict], order: str) -> None:
    of_run = [verdict for verdict in verdicts if verdict.run == order]
    assert [verdict.guarantee for verdict in of_run if not verdict.holds] == []
    accounting = next(verdict for verdict in of_run if verdict.guarantee == PRIORITY_ACCOUNTING)
    assert accounting.promised
    assert accounting.examined == SLOW.total


@pytest.mark.parametrize("order", ORDERS)
def test_urgent_messages_overtook_what_was_queued(runs: Path, order: str) -> None:
    run = open_run(runs / order)
    explanation = explain(run, find_worst(run))
    queues = [wait for wait in explanation.waits if wait.kind is QueueKind.MEMBER]
    assert len(queues) == SLOW.members
    assert all(wait.overtaken for wait in queues)


def test_one_insertion_moved_by_one_position_is_reported(
    verdicts: list[Verdict], moved: tuple[MessageRow, MessageRow]
) -> None:
    urgent, other = moved
    broken = {
        verdict.guarantee: verdict for verdict in verdicts if verdict.run == MOVED and not verdict.holds
    }
    named = [(found.position, found.messages) for found in broken[PRIORITY_ACCOUNTING].examples]
    assert (other.position, (id_of(urgent), id_of(other))) in named
