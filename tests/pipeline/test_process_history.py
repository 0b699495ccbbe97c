"""The histories of processes, and the tables made from them, agree with the rows."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline import model_runs
from pipeline.sample_runs import TICK_NS, with_local_clocks
from pipeline.trace_facts import TraceFacts
from priocast.pipeline.sources import open_runs
from priocast.pipeline.tables.membership import Attendance, Lane, ViewRecord, lanes, view_records
from priocast.pipeline.tables.run_time import start_times
from priocast.pipeline.tables.timeline import timelines
from priocast.pipeline.trace_tables import TraceTables, load_trace
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, VIEW

pytestmark = pytest.mark.spark

RUNS = {
    name: run.named(name)
    for name, run in {
        "returned": model_runs.returned(),
        "merged": model_runs.merged(),
        "selective": model_runs.selective(),
        "crashed": model_runs.crashed(batch_max=4),
        "left": model_runs.left(),
    }.items()
}


RUNS["local"] = with_local_clocks(model_runs.returned()).named("local")
FACTS = {name: TraceFacts(run) for name, run in RUNS.items()}


@pytest.fixture(scope="module")
def trace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceTables]:
    directory = tmp_path_factory.mktemp("runs")
    for run in RUNS.values():
        run.write_whole(directory)
    with load_trace(open_runs(spark, directory)) as gathered:
        yield gathered


@pytest.fixture(scope="module")
def records(trace: TraceTables) -> dict[tuple[str, str], ViewRecord]:
    return {(record.run, record.view): record for record in view_records(trace)}


@pytest.fixture(scope="module")
def lane_of(trace: TraceTables) -> dict[tuple[str, str], Lane]:
    return {(lane.run, lane.process): lane for lane in lanes(trace)}


@pytest.mark.parametrize("name", RUNS)
def test_processes_are_as_recorded(trace: TraceTables, name: str) -> None:
    facts = FACTS[name]
    processes = trace.histories[name].processes
    assert list(processes) == facts.processes
    for process, history in processes.items():
        assert [tuple(event.view) for event in history.views] == facts.views_of(process)
        assert [event.reason for event in history.views] == [row.reason for row in facts.received[process]]
        assert (history.stop is None) == (process not in facts.stopped)
        assert not history.stop or history.stop.voluntary == facts.stopped[process][0]
        assert [state.position for state in history.states] == [
            row.position for row in facts.states.get(process, [])
        ]
        for view, span in history.delivered.items():
            mine = [event for event in facts.deliveries if (event.process, event.view) == (process, view)]
            assert (span.count, span.position_first, span.position_last) == (
                len(mine),
                mine[0].position,
                mine[-1].position,
            )
        packets = [event for event in facts.of(BROADCAST, SENT, RECEIVED) if event.process == process]
        assert history.worked_until == {event.view: event.step for event in packets}


def test_history_knows_to_whom_messages_were_sent(trace: TraceTables) -> None:
    assert trace.histories["merged"].recipient_lists == frozenset()
    expected = {row.to for row in RUNS["selective"].messages if row.to}
    assert trace.histories["selective"].recipient_lists == expected


@pytest.mark.parametrize("name", RUNS)
def test_correct_runs_have_no_irregular_messages(trace: TraceTables, name: str) -> None:
    assert not any(counts.irregular or counts.spurious for counts in trace.counts if counts.run == name)


@pytest.mark.parametrize("name", RUNS)
def test_view_records_agree_with_the_rows(records: dict[tuple[str, str], ViewRecord], name: str) -> None:
    facts = FACTS[name]
    for view in facts.views:
        record = records[name, f"{view[0]}@{view[1]}"]
        assert record.members == facts.members(view)
        assert record.messages == len({event.message for event in facts.deliveries if event.view == view})
        came = {process: origin.view for origin in record.origins for process in origin.processes}
        for process, before in came.items():
            views = facts.views_of(process)
            index = views.index(view)
            assert before == (f"{views[index - 1][0]}@{views[index - 1][1]}" if index else "")
        assert set(came) == {process for process in facts.processes if view in facts.views_of(process)}


def test_gap_is_the_longest_between_two_deliveries(records: dict[tuple[str, str], ViewRecord]) -> None:
    rows = [row for row in RUNS["crashed"].messages if row.event == DELIVERED]
    gaps = []
    for member in "abc":
        last = max(row.time_ns for row in rows if (row.member, row.view) == (member, 1))
        first = min(row.time_ns for row in rows if (row.member, row.view) == (member, 2))
        gaps.append((first - last) / 1e6)
    assert records["crashed", "2@a#1"].gap_ms == max(gaps)
    assert records["crashed", "1@a#1"].gap_ms is None


def test_lanes_show_how_processes_join_and_end(lane_of: dict[tuple[str, str], Lane]) -> None:
    endings = {process: lane.ending for (run, process), lane in lane_of.items() if run == "returned"}
    assert endings == {
        "a#1": None,
        "b#1": None,
        "c#1": None,
        "d#1": "evicted: d failed; e failed",
        "d#2": None,
        "e#1": "evicted: d failed; e failed",
        "e#2": None,
    }
    assert len(lane_of["returned", "d#2"].restored_s) == 1
    assert lane_of["crashed", "d#1"].ending == ""
    assert lane_of["left", "a#1"].ending == "a left"
    for lane in lane_of.values():
        times = [(at.start_s, at.end_s) for at in lane.attendances]
        assert times == sorted(times)
        assert all(start <= end for start, end in times)


def test_both_sides_of_a_partition_have_their_views(lane_of: dict[tuple[str, str], Lane]) -> None:
    def views(process: str) -> list[str]:
        return [at.view for at in lane_of["merged", process].attendances]

    assert views("a#1") == ["1@a#1", "2@a#1", "3@a#1"]
    assert views("d#1") == ["1@a#1", "2@d#1", "3@a#1"]


def test_a_joining_process_is_aligned_with_the_others_by_its_first_view(
    trace: TraceTables, lane_of: dict[tuple[str, str], Lane]
) -> None:
    """With clocks that cannot be compared: within the time in which the others received the same view."""

    def first(lane: Lane) -> Attendance:
        return lane.attendances[0]

    expected = first(lane_of["returned", "d#2"])
    aligned = first(lane_of["local", "d#2"])
    assert aligned.view == expected.view
    assert aligned.start_s == pytest.approx(expected.start_s, abs=6 * TICK_NS / 1e9)
    run = next(run for run in trace.runs if run.name == "local")
    started = start_times(run, trace.histories["local"])
    assert all(started[process] // 10**12 == index for index, process in enumerate(sorted(started)))


def test_presence_is_from_the_first_view_to_the_end(trace: TraceTables) -> None:
    present = {
        timeline.process: timeline.present for timeline in timelines(trace) if timeline.run == "returned"
    }
    assert all(present["a#1"])
    assert present["d#1"][0]
    assert not present["d#1"][-1]
    assert not present["d#2"][0]
    assert present["d#2"][-1]
    rows = [row for row in RUNS["returned"].group_events if row.event == VIEW]
    assert {row.member for row in rows} == set("abcde")
