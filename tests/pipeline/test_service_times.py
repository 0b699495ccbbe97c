"""The execution times of the qualities of service agree with a plain computation over the rows."""

from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest
from pyspark.sql import SparkSession

from pipeline.sample_runs import with_local_clocks
from pipeline.service_runs import as_run, calm, delay_and_say_so
from priocast.core.quality import ATOMIC, RELIABLE, delta
from priocast.pipeline.sources import open_runs
from priocast.pipeline.tables.service_times import service_times
from priocast.pipeline.trace_tables import load_trace
from priocast.trace.schema import DELIVERED, FINISHED, SENT, ServiceRow, TraceRow


def without_deliveries_of_c(rows: list[TraceRow]) -> list[TraceRow]:
    """Member c delivers nothing of the first message of a."""
    return [
        row
        for row in rows
        if not (
            isinstance(row, ServiceRow)
            and row.event == DELIVERED
            and (row.member, row.sender, row.number) == ("c", "a", 1)
        )
    ]


def test_times_run_from_the_sending_to_the_first_and_last_delivery(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = {
        "reliable": as_run(calm(RELIABLE), "reliable"),
        "atomic": as_run(calm(ATOMIC), "atomic"),
        "incomplete": as_run(calm(RELIABLE), "incomplete").changed(without_deliveries_of_c),
        "late": as_run(calm(delta(120)), "late").changed(delay_and_say_so),
        "local": with_local_clocks(as_run(calm(RELIABLE), "local")),
    }
    for run in runs.values():
        run.write(tmp_path)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        found = {(each.run, each.bytes): each for each in service_times(trace)}
    assert {run for run, _ in found} == {"reliable", "atomic", "incomplete", "late"}, (
        "clocks must be comparable"
    )
    two_units = found["incomplete", 2]
    assert (two_units.count, two_units.incomplete) == (5, 1)
    assert sum(each.late for each in found.values()) == 1
    late = next(each for each in found.values() if each.late)
    assert (late.run, late.incomplete) == ("late", 0)
    assert late.spread_max_ms <= 10, "what is late is in none of the figures"
    for name in ("reliable", "atomic"):
        expected = plain_times([row for row in runs[name].rows if isinstance(row, ServiceRow)])
        for size, (indications, confirmations, spreads) in expected.items():
            time = found[name, size]
            assert (time.quality, time.count, time.incomplete) == (name, len(indications), 0)
            assert time.indication_ms == pytest.approx(median(indications) / 1e6)
            assert time.confirmation_ms == pytest.approx(median(confirmations) / 1e6)
            assert time.spread_ms == pytest.approx(median(spreads) / 1e6)
            assert time.spread_max_ms == pytest.approx(max(spreads) / 1e6)
            assert time.longest_ms == pytest.approx(max(indications) / 1e6)


def plain_times(rows: list[ServiceRow]) -> dict[int, tuple[list[int], list[int], list[int]]]:
    """Indications, confirmations and spreads of each message, by size."""
    sent = {(row.sender, row.number): row for row in rows if row.event == SENT}
    finished = {(row.sender, row.number): row.time_ns for row in rows if row.event == FINISHED}
    delivered = defaultdict(list)
    for row in rows:
        if row.event == DELIVERED:
            delivered[row.sender, row.number].append(row.time_ns)
    found: dict[int, tuple[list[int], list[int], list[int]]] = defaultdict(lambda: ([], [], []))
    for message, row in sent.items():
        indications, confirmations, spreads = found[row.bytes]
        indications.append(max(delivered[message]) - row.time_ns)
        confirmations.append(finished[message] - row.time_ns)
        spreads.append(max(delivered[message]) - min(delivered[message]))
    return found
