"""Chronicles, and the tables that are made of them, say what the rows say."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline import living_runs
from pipeline.sample_runs import TICK_NS, with_local_clocks
from pipeline.story import Story
from priocast.pipeline.evidence import Evidence, gather
from priocast.pipeline.sources import open_runs
from priocast.pipeline.tables.membership import Attendance, Lane, ViewRecord, lanes, view_records
from priocast.pipeline.tables.run_time import beginnings
from priocast.pipeline.tables.timeline import timelines
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, VIEW

pytestmark = pytest.mark.spark

RUNS = {
    name: run.named(name)
    for name, run in {
        "returned": living_runs.returned(),
        "merged": living_runs.merged(),
        "selective": living_runs.selective(),
        "crashed": living_runs.crashed(batch_max=4),
        "left": living_runs.left(),
    }.items()
}


RUNS["local"] = with_local_clocks(living_runs.returned()).named("local")
STORIES = {name: Story(run) for name, run in RUNS.items()}


@pytest.fixture(scope="module")
def evidence(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    directory = tmp_path_factory.mktemp("runs")
    for run in RUNS.values():
        run.write_whole(directory)
    with gather(spark, open_runs(directory)) as gathered:
        yield gathered


@pytest.fixture(scope="module")
def records(evidence: Evidence) -> dict[tuple[str, str], ViewRecord]:
    return {(record.run, record.view): record for record in view_records(evidence)}


@pytest.fixture(scope="module")
def lane_of(evidence: Evidence) -> dict[tuple[str, str], Lane]:
    return {(lane.run, lane.process): lane for lane in lanes(evidence)}


@pytest.mark.parametrize("name", RUNS)
def test_lives_are_as_recorded(evidence: Evidence, name: str) -> None:
    story = STORIES[name]
    lives = evidence.chronicles[name].lives
    assert list(lives) == story.processes
    for process, life in lives.items():
        assert [tuple(telling.view) for telling in life.told] == story.views_of(process)
        assert [telling.reason for telling in life.told] == [row.packet for row in story.told[process]]
        assert (life.stopped.reason if life.stopped else None) == story.stopped.get(process)
        assert [state.position for state in life.restored] == [
            row.position for row in story.states.get(process, [])
        ]
        for view, span in life.delivered.items():
            mine = [event for event in story.deliveries if (event.process, event.view) == (process, view)]
            assert (span.count, span.position_first, span.position_last) == (
                len(mine),
                mine[0].position,
                mine[-1].position,
            )
        packets = [event for event in story.of(BROADCAST, SENT, RECEIVED) if event.process == process]
        assert life.worked_until == {event.view: event.step for event in packets}


def test_chronicle_knows_to_whom_messages_were_sent(evidence: Evidence) -> None:
    assert evidence.chronicles["merged"].addressed == frozenset()
    expected = {row.to for row in RUNS["selective"].rows if row.to}
    assert evidence.chronicles["selective"].addressed == expected


@pytest.mark.parametrize("name", RUNS)
def test_good_runs_have_nothing_odd(evidence: Evidence, name: str) -> None:
    assert not any(counted.odd or counted.unknown for counted in evidence.census if counted.run == name)


@pytest.mark.parametrize("name", RUNS)
def test_view_records_say_what_the_rows_say(records: dict[tuple[str, str], ViewRecord], name: str) -> None:
    story = STORIES[name]
    for view in story.views:
        record = records[name, f"{view[0]}@{view[1]}"]
        assert record.members == story.members(view)
        assert record.messages == len({event.message for event in story.deliveries if event.view == view})
        came = {process: origin.view for origin in record.origins for process in origin.processes}
        for process, before in came.items():
            views = story.views_of(process)
            place = views.index(view)
            assert before == (f"{views[place - 1][0]}@{views[place - 1][1]}" if place else "")
        assert set(came) == {process for process in story.processes if view in story.views_of(process)}


def test_gap_is_the_longest_between_two_deliveries(records: dict[tuple[str, str], ViewRecord]) -> None:
    rows = [row for row in RUNS["crashed"].rows if row.event == DELIVERED]
    gaps = []
    for member in "abc":
        last = max(row.time_ns for row in rows if (row.member, row.view) == (member, 1))
        first = min(row.time_ns for row in rows if (row.member, row.view) == (member, 2))
        gaps.append((first - last) / 1e6)
    assert records["crashed", "2@a#1"].gap_ms == max(gaps)
    assert records["crashed", "1@a#1"].gap_ms is None


def test_lanes_show_how_processes_come_and_end(lane_of: dict[tuple[str, str], Lane]) -> None:
    endings = {process: lane.ending for (run, process), lane in lane_of.items() if run == "returned"}
    assert endings == {
        "a#1": None,
        "b#1": None,
        "c#1": None,
        "d#1": "evicted",
        "d#2": None,
        "e#1": "evicted",
        "e#2": None,
    }
    assert len(lane_of["returned", "d#2"].restored_s) == 1
    assert lane_of["crashed", "d#1"].ending == ""
    assert lane_of["left", "a#1"].ending == "a left"
    for lane in lane_of.values():
        times = [(at.start_s, at.end_s) for at in lane.attendances]
        assert times == sorted(times)
        assert all(start <= end for start, end in times)


def test_views_of_both_sides_have_lanes_side_by_side(lane_of: dict[tuple[str, str], Lane]) -> None:
    def views(process: str) -> list[str]:
        return [at.view for at in lane_of["merged", process].attendances]

    assert views("a#1") == ["1@a#1", "2@a#1", "3@a#1"]
    assert views("d#1") == ["1@a#1", "2@d#1", "3@a#1"]


def test_who_came_later_is_placed_beside_the_others_by_its_first_view(
    evidence: Evidence, lane_of: dict[tuple[str, str], Lane]
) -> None:
    """By clocks that cannot be compared: within the time that others took to be told of the same view."""

    def first(lane: Lane) -> Attendance:
        return lane.attendances[0]

    there = first(lane_of["returned", "d#2"])
    beside = first(lane_of["local", "d#2"])
    assert beside.view == there.view
    assert beside.start_s == pytest.approx(there.start_s, abs=6 * TICK_NS / 1e9)
    run = next(run for run in evidence.runs if run.name == "local")
    began = beginnings(run, evidence.chronicles["local"])
    assert all(began[process] // 10**12 == place for place, process in enumerate(sorted(began)))


def test_presence_is_from_the_first_view_to_the_end(evidence: Evidence) -> None:
    present = {
        timeline.process: timeline.present for timeline in timelines(evidence) if timeline.run == "returned"
    }
    assert all(present["a#1"])
    assert present["d#1"][0]
    assert not present["d#1"][-1]
    assert not present["d#2"][0]
    assert present["d#2"][-1]
    rows = [row for row in RUNS["returned"].rows if row.event == VIEW]
    assert {row.member for row in rows} == set("abcde")
