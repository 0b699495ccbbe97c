"""Messages that lack a delivery are judged by group, and one by one where a group may hide a difference."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.sample_runs import SampleRun, play
from priocast.pipeline.checks import agreement, integrity
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace
from priocast.trace.schema import DELIVERED, MessageRow, TraceRow

pytestmark = pytest.mark.spark

#: At these positions one member delivers twice and another one not at all: the number of deliveries and the
#: combined hash of the processes are the same.
REPEATED_AT = {10: ("a", "c"), 12: ("c", "a")}


def damaged(run: SampleRun) -> SampleRun:
    """The run in which d delivers only at even positions, and others as above."""

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        return [row for row in rows for _ in range(times(row))]

    return run.changed(change)


def times(row: TraceRow) -> int:
    """How often a row of the good run is in the damaged one."""
    if not isinstance(row, MessageRow) or row.event != DELIVERED:
        return 1
    twice, never = REPEATED_AT.get(row.position, ("", ""))
    if row.member == never or (row.member == "d" and row.position % 2):
        return 0
    return 2 if row.member == twice else 1


def test_a_group_is_judged_by_one_of_its_messages(spark: SparkSession, tmp_path: Path) -> None:
    good = play(batch_max=1)
    damaged(good).write(tmp_path)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        assert trace.groups is not None and trace.groups.unclear is not None
        assert (trace.groups.sets.count(), trace.groups.unclear.count()) == (1, 1)
        lacking = {row["position"]: row for row in agreement.find(trace).collect()}
        repeated = {row["position"]: row["members"] for row in integrity.find(trace).collect()}
    odd = {row.position for row in good.messages if row.event == DELIVERED and row.position % 2}
    assert lacking.keys() == {*odd, *REPEATED_AT}
    assert all(lacking[position]["members"] == ["d#1"] for position in odd)
    assert len({message for row in lacking.values() for message in row["messages"]}) == len(lacking)
    assert {lacking[position]["summary"] for position in odd} == {"delivered by a#1, b#1, c#1 but not by d#1"}
    for position, (twice, never) in REPEATED_AT.items():
        assert lacking[position]["members"] == [f"{never}#1"]
        assert repeated[position] == [f"{twice}#1"]
    assert repeated.keys() == REPEATED_AT.keys()
