"""The tables say what a plain computation over the rows says."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

import pytest
from pyspark.sql import SparkSession

from pipeline.mutants import delivery_dropped
from pipeline.oracle import wronged
from pipeline.sample_runs import SampleRun, play
from pipeline.story import Story
from priocast.core.priority import LOWEST
from priocast.pipeline.evidence import Evidence, gather
from priocast.pipeline.sources import open_runs
from priocast.pipeline.tables.delivery_time import delivery_times, name_of
from priocast.pipeline.tables.inversions import count_inversions
from priocast.pipeline.tables.queue_depth import queue_depths
from priocast.pipeline.tables.throughput import throughputs
from priocast.pipeline.tables.timeline import Timeline, timelines
from priocast.trace.schema import BROADCAST, DELIVERED, Row

RUNS = {
    "ageing": play(run="ageing", starvation="ageing:50us", ticks=30),
    "plain": play(run="plain", prioritised=False, ticks=30),
    "strict": play(run="strict", ticks=30),
}


@pytest.fixture(scope="module")
def evidence(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    directory = tmp_path_factory.mktemp("runs")
    for run in RUNS.values():
        run.write(directory)
    with gather(spark, open_runs(directory)) as gathered:
        yield gathered


def messages(run: SampleRun, event: str) -> Iterator[tuple[tuple[str, int, int], int, Row]]:
    """Each message of each row of a kind: its key, its priority and the row."""
    for row in run.rows:
        if row.event == event:
            for index in range(row.count):
                priority = row.priorities[index] if row.priorities else row.level
                yield (row.sender, row.level, row.first + index), priority, row


@pytest.mark.spark
@pytest.mark.parametrize("name", RUNS)
def test_delivery_time_is_from_broadcast_to_delivery_at_the_sender(evidence: Evidence, name: str) -> None:
    own = {key: row.time_ns for key, _, row in messages(RUNS[name], DELIVERED) if row.member == row.sender}
    took_ms = defaultdict(list)
    for key, priority, row in messages(RUNS[name], BROADCAST):
        took_ms[priority].append((own[key] - row.time_ns) / 1e6)
    found = {time.priority: time for time in delivery_times(evidence) if time.run == name}
    assert found.keys() == took_ms.keys()
    for priority, times in took_ms.items():
        time = found[priority]
        assert (time.count, time.max_ms) == (len(times), max(times))
        assert time.mean_ms == pytest.approx(fmean(times))
        assert time.median_ms == pytest.approx(sorted(times)[(len(times) - 1) // 2], abs=1)
        assert [share for share, _ in time.curve] == sorted(share for share, _ in time.curve)
        assert time.curve[0][1] == min(times)


@pytest.mark.spark
def test_inversions_are_none_in_a_strict_run_and_many_in_a_plain_one(evidence: Evidence) -> None:
    strict = {of.priority: of.overtaken for of in count_inversions(evidence) if of.run == "strict"}
    plain = {of.priority: of.share for of in count_inversions(evidence) if of.run == "plain"}
    assert set(strict.values()) == {0}
    assert plain[min(plain)] == 0
    assert plain[max(plain)] > 0.5


@pytest.mark.spark
def test_inversions_of_an_ageing_run_are_those_by_priority_alone(evidence: Evidence) -> None:
    judged_strictly = SampleRun(play(run="ageing").manifest, RUNS["ageing"].rows)
    overtaken = sum(of.overtaken for of in count_inversions(evidence) if of.run == "ageing")
    assert overtaken == len(list(wronged(Story(judged_strictly)))) > 0


@pytest.mark.spark
def test_timelines_add_up(evidence: Evidence) -> None:
    for timeline in timelines(evidence):
        rows = [row for row in RUNS[timeline.run].rows if f"{row.member}#1" == timeline.process]
        delivered = [row for row in rows if row.event == DELIVERED]
        assert sum(timeline.delivered) == sum(row.count for row in delivered)
        assert max(timeline.waiting) == max(row.backlog for row in rows)
        assert timeline.is_orderer == (timeline.process == "a#1")
        assert all(timeline.present)
        seconds = (delivered[-1].time_ns - delivered[0].time_ns) / 1e9
        assert timeline.rate == pytest.approx(sum(timeline.delivered) / seconds)


@pytest.mark.spark
def test_undelivered_are_counted_by_priority(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = play(ticks=6)
    gone = next(row for row in run.rows if row.event == DELIVERED)
    lost = run.changed(
        lambda rows: [
            row for row in rows if (row.event, row.sender, row.level) != (DELIVERED, gone.sender, gone.level)
        ]
    )
    directory = tmp_path_factory.mktemp("lost")
    lost.write(directory)
    expected = sum(
        row.count
        for row in run.rows
        if (row.event, row.sender, row.level) == (BROADCAST, gone.sender, gone.level)
    )
    with gather(spark, open_runs(directory)) as evidence:
        undelivered = {counted.priority: counted.undelivered for counted in evidence.census}
    assert undelivered.pop(gone.level) == expected
    assert set(undelivered.values()) == {0}


@pytest.mark.spark
def test_delivery_dropped_at_one_member_is_not_undelivered(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("dropped")
    delivery_dropped(play(batch_max=1)).run.write(directory)
    with gather(spark, open_runs(directory)) as evidence:
        assert {counted.undelivered for counted in evidence.census} == {0}


def timeline(
    process: str,
    delivered: tuple[int, ...],
    rate: float,
    is_orderer: bool = False,
    present: tuple[bool, ...] = (True, True),
) -> Timeline:
    return Timeline("run", process, is_orderer, 0.5, delivered, delivered, present, rate)


def test_throughput_is_that_of_the_slowest() -> None:
    (found,) = throughputs([timeline("a#1", (5, 1), 6.0), timeline("b#1", (2, 3), 5.0)])
    assert (found.slowest, found.per_second, found.over_time) == ("b#1", 5.0, (4.0, 2.0))


def test_throughput_does_not_count_who_was_not_there() -> None:
    gone = timeline("c#1", (4, 0), 7.0, present=(True, False))
    (found,) = throughputs([timeline("a#1", (5, 3), 6.0), gone])
    assert found.over_time == (8.0, 6.0)
    (nobody,) = throughputs([gone])
    assert nobody.over_time == (8.0, 0.0)


def test_queue_is_at_the_orderer_or_else_everywhere() -> None:
    with_orderer = [timeline("a#1", (5, 1), 1.0, is_orderer=True), timeline("b#1", (2, 3), 1.0)]
    assert [(depth.process, depth.deepest) for depth in queue_depths(with_orderer)] == [("a#1", 5)]
    without = [timeline("a#1", (5, 1), 1.0), timeline("b#1", (2, 3), 1.0)]
    assert [depth.process for depth in queue_depths(without)] == ["a#1", "b#1"]


def test_priorities_have_names() -> None:
    assert (name_of(LOWEST), name_of(17)) == ("lowest", "priority 17")
