"""The tables agree with a plain computation over the rows."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

import pytest
from pyspark.sql import SparkSession

from pipeline.mutants import delivery_dropped
from pipeline.sample_runs import LEVELS, SampleRun, play, with_local_clocks
from priocast.core.priority import LOWEST
from priocast.pipeline.message_table import MessageCounts
from priocast.pipeline.sources import open_runs
from priocast.pipeline.tables.delivery_time import DeliveryTime, delivery_times, name_of
from priocast.pipeline.tables.inversions import Inversions, count_inversions
from priocast.pipeline.tables.queue_depth import queue_depths
from priocast.pipeline.tables.throughput import throughputs
from priocast.pipeline.tables.timeline import Timeline, timelines
from priocast.pipeline.trace_tables import TraceTables, load_trace
from priocast.trace.schema import BROADCAST, DELIVERED, MessageRow, TraceRow

RUNS = {
    "ageing": play(run="ageing", starvation="ageing:50us", ticks=30),
    "plain": play(run="plain", prioritised=False, ticks=30),
    "strict": play(run="strict", ticks=30),
    "ring": play(run="ring", ticks=30, order="token-ring", batch_max=3),
    "local": with_local_clocks(play(ticks=10)).named("local"),
}
COUNTED = play(ticks=6)
GONE = next(row for row in COUNTED.messages if row.event == DELIVERED)


def _is_lost(row: TraceRow) -> bool:
    lost = (DELIVERED, GONE.sender, GONE.level)
    return isinstance(row, MessageRow) and (row.event, row.sender, row.level) == lost


#: Runs in which somebody, or nobody, delivers some messages.
INCOMPLETE = {
    "lost": COUNTED.changed(lambda rows: [row for row in rows if not _is_lost(row)]),
    "dropped": delivery_dropped(play(batch_max=1)).run,
}


@pytest.fixture(scope="module")
def trace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceTables]:
    directory = tmp_path_factory.mktemp("runs")
    for run in RUNS.values():
        run.write(directory)
    with load_trace(open_runs(spark, directory)) as gathered:
        yield gathered


@pytest.fixture(scope="module")
def times(trace: TraceTables) -> list[DeliveryTime]:
    return list(delivery_times(trace))


@pytest.fixture(scope="module")
def inversions(trace: TraceTables) -> list[Inversions]:
    return list(count_inversions(trace))


def messages(run: SampleRun, event: str) -> Iterator[tuple[tuple[str, int, int], int, MessageRow]]:
    """Each message of each row of an event: its key, its priority and the row."""
    for row in run.messages:
        if row.event == event:
            for index in range(row.count):
                priority = row.priorities[index] if row.priorities else row.level
                yield (row.sender, row.level, row.first + index), priority, row


@pytest.mark.spark
@pytest.mark.parametrize("name", RUNS)
def test_delivery_time_is_from_broadcast_to_delivery_at_the_sender(
    times: list[DeliveryTime], name: str
) -> None:
    own = {key: row.time_ns for key, _, row in messages(RUNS[name], DELIVERED) if row.member == row.sender}
    took_ms = defaultdict(list)
    for key, priority, row in messages(RUNS[name], BROADCAST):
        took_ms[priority].append((own[key] - row.time_ns) / 1e6)
    found = {time.priority: time for time in times if time.run == name}
    assert found.keys() == took_ms.keys()
    for priority, took in took_ms.items():
        time = found[priority]
        assert (time.count, time.max_ms) == (len(took), max(took))
        assert time.mean_ms == pytest.approx(fmean(took))
        assert time.median_ms == pytest.approx(sorted(took)[(len(took) - 1) // 2], abs=1)
        assert [share for share, _ in time.curve] == sorted(share for share, _ in time.curve)
        assert time.curve[0][1] == min(took)


@pytest.mark.spark
def test_inversions_are_few_in_a_strict_run_and_many_in_a_plain_one(inversions: list[Inversions]) -> None:
    found = {(of.run, of.priority): of for of in inversions}
    assert {run for run, _ in found} == set(RUNS) - {"local"}
    assert {found[run, min(LEVELS)].pairs for run, _ in found} == {0}
    strict, plain, ring = (found[run, max(LEVELS)] for run in ("strict", "plain", "ring"))
    assert plain.share > 0.9 and strict.share < 0.1
    assert plain.pairs > 5 * ring.pairs > 5 * strict.pairs


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(set(RUNS) - {"local"}))
def test_inversions_are_all_pairs_that_the_group_delivered_in_the_wrong_order(
    inversions: list[Inversions], name: str
) -> None:
    broadcast_at = {key: row.time_ns for key, _, row in messages(RUNS[name], BROADCAST)}
    delivered_at: dict[tuple[str, int, int], tuple[int, int]] = {}
    priority_of = {}
    for key, priority, row in messages(RUNS[name], DELIVERED):
        when = (row.time_ns, row.position + key[2] - row.first)
        delivered_at[key] = min(delivered_at.get(key, when), when)
        priority_of[key] = priority
    before = {
        high: sum(
            priority_of[low] < priority_of[high] and broadcast_at[high] < at[0] and at < delivered_at[high]
            for low, at in delivered_at.items()
        )
        for high in delivered_at
    }
    for found in (of for of in inversions if of.run == name):
        of_priority = [count for key, count in before.items() if priority_of[key] == found.priority]
        assert (found.messages, found.pairs) == (len(of_priority), sum(of_priority))
        assert (found.overtaken, found.worst) == (sum(map(bool, of_priority)), max(of_priority))


@pytest.mark.spark
def test_timelines_add_up(trace: TraceTables) -> None:
    for timeline in timelines(trace):
        rows = [row for row in RUNS[timeline.run].messages if f"{row.member}#1" == timeline.process]
        delivered = [row for row in rows if row.event == DELIVERED]
        assert sum(timeline.delivered) == sum(row.count for row in delivered)
        assert max(timeline.waiting) == max(row.backlog for row in rows)
        assert timeline.decides == (timeline.process == "a#1" or timeline.run == "ring")
        assert all(timeline.present)
        seconds = (delivered[-1].time_ns - delivered[0].time_ns) / 1e9
        assert timeline.rate == pytest.approx(sum(timeline.delivered) / seconds)


@pytest.fixture(scope="module")
def counts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[MessageCounts, ...]:
    directory = tmp_path_factory.mktemp("incomplete")
    for name, run in INCOMPLETE.items():
        run.named(name).write(directory)
    with load_trace(open_runs(spark, directory)) as trace:
        return tuple(trace.counts)


@pytest.mark.spark
def test_undelivered_are_counted_by_priority(counts: tuple[MessageCounts, ...]) -> None:
    expected = sum(
        row.count
        for row in COUNTED.messages
        if (row.event, row.sender, row.level) == (BROADCAST, GONE.sender, GONE.level)
    )
    undelivered = {each.priority: each.undelivered for each in counts if each.run == "lost"}
    assert undelivered.pop(GONE.level) == expected
    assert set(undelivered.values()) == {0}


@pytest.mark.spark
def test_delivery_dropped_at_one_member_is_not_undelivered(counts: tuple[MessageCounts, ...]) -> None:
    assert {each.undelivered for each in counts if each.run == "dropped"} == {0}


def timeline(
    process: str,
    delivered: tuple[int, ...],
    rate: float,
    decides: bool = False,
    present: tuple[bool, ...] = (True, True),
) -> Timeline:
    return Timeline("run", process, decides, 0.5, delivered, delivered, present, rate)


def test_throughput_is_that_of_the_slowest_member() -> None:
    (found,) = throughputs([timeline("a#1", (5, 1), 6.0), timeline("b#1", (2, 3), 5.0)])
    assert (found.slowest, found.per_second, found.over_time) == ("b#1", 5.0, (4.0, 2.0))


def test_throughput_does_not_count_absent_members() -> None:
    gone = timeline("c#1", (4, 0), 7.0, present=(True, False))
    (found,) = throughputs([timeline("a#1", (5, 3), 6.0), gone])
    assert found.over_time == (8.0, 6.0)
    (nobody,) = throughputs([gone])
    assert nobody.over_time == (8.0, 0.0)


def test_queue_depth_is_measured_where_the_order_is_decided() -> None:
    with_orderer = [timeline("a#1", (5, 1), 1.0, decides=True), timeline("b#1", (2, 3), 1.0)]
    assert [(depth.process, depth.deepest) for depth in queue_depths(with_orderer)] == [("a#1", 5)]


def test_priorities_have_names() -> None:
    assert (name_of(LOWEST), name_of(17)) == ("lowest", "priority 17")
