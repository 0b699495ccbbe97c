"""Figures can be drawn of any values of the tables, and take the text colour of the page."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from pipeline.sample_results import delivery_time, lanes, result
from priocast.pipeline.figures.delivery_time import draw_distributions, draw_p99
from priocast.pipeline.figures.execution_time import MeasuredTime, draw_over_members, draw_over_sizes
from priocast.pipeline.figures.membership import draw_membership, lanes_of_changing_runs
from priocast.pipeline.figures.ordering_time import OrderingTime, draw_ordering_times
from priocast.pipeline.figures.over_time import draw_queue_depth, draw_throughput
from priocast.pipeline.figures.style import (
    INK,
    colours_of_priorities,
    colours_of_runs,
    render_png,
    render_svg,
)
from priocast.pipeline.tables.queue_depth import QueueDepth

TWO = result("plain", "prioritised")
ORDERING = [
    OrderingTime(way, members, members * factor, compared=way == "raw")
    for way, factor in (("raw", 0.1), ("skeen", 1.0), ("reorder", 1.1))
    for members in (8, 2, 4)
]
EXECUTION = [
    MeasuredTime(way, members, size, factor * members, 2 * factor * members, compared=way == "raw")
    for way, factor in (("raw", 0.1), ("reliable", 1.0), ("atomic", 2.0))
    for members in (4, 2)
    for size in (1024, 64)
]
FIGURES = {
    "distributions": lambda: draw_distributions(TWO.delivery_times),
    "p99": lambda: draw_p99(TWO.delivery_times),
    "throughput": lambda: draw_throughput(TWO.throughputs),
    "queue depth": lambda: draw_queue_depth(TWO.queue_depths),
    "membership": lambda: draw_membership(TWO.lanes),
    "ordering time": lambda: draw_ordering_times(ORDERING),
    "over sizes": lambda: draw_over_sizes([time for time in EXECUTION if time.way == "atomic"]),
    "over members": lambda: draw_over_members([time for time in EXECUTION if time.size == 64]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_labelled_and_renders(name: str) -> None:
    figure: Figure = FIGURES[name]()
    assert all(axes.get_xlabel() or name == "p99" for axes in figure.axes)
    assert figure.axes[0].get_ylabel()
    svg = render_svg(figure)
    assert ElementTree.fromstring(svg).tag.endswith("svg")  # noqa: S314 (our own drawing)
    assert "currentColor" in svg
    assert INK not in svg
    assert render_png(figure).startswith(b"\x89PNG")


def test_one_run_of_one_priority_that_took_no_time_can_be_drawn() -> None:
    times = [delivery_time("only", 96, 0.0)]
    assert render_svg(draw_distributions(times))
    assert render_svg(draw_p99(times))


def test_priority_that_only_one_run_has_leaves_a_gap() -> None:
    times = [delivery_time("one", 96, 1.0), delivery_time("other", 96, 1.0), delivery_time("other", 224, 1.0)]
    (axes,) = draw_p99(times).axes
    assert len(axes.patches) == 3


MANY = [f"{order} {variant}" for order in "abcdefghijklmn" for variant in ("plain", "prioritised")]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("suffix", ["", "-over-token-ring-prioritised-half-load"])
def test_many_runs_have_room_and_are_distinguishable(suffix: str) -> None:
    all_of_them = result(*(run + suffix for run in MANY))
    figures = [
        draw_p99(all_of_them.delivery_times),
        draw_throughput(all_of_them.throughputs),
        draw_queue_depth(all_of_them.queue_depths),
    ]
    for figure in figures:
        assert render_svg(figure)
        (axes,) = figure.axes
        assert axes.get_position().height * figure.get_figheight() > 2
    drawn = [(line.get_color(), line.get_linestyle()) for line in figures[1].axes[0].lines]
    assert len(set(drawn[:24])) == 24


def test_p99_of_many_runs_is_a_row_for_each_with_a_point_for_each_priority() -> None:
    times = [delivery_time(run, priority, 1.0 + priority) for run in MANY for priority in (96, 224)]
    (axes,) = draw_p99(times).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == MANY
    assert [len(points.get_offsets()) for points in axes.collections] == [len(MANY)] * 2  # type: ignore[arg-type]


def test_runs_and_priorities_keep_their_colours() -> None:
    assert colours_of_runs(["x", "y", "x"]) == {
        "x": colours_of_runs(["x"])["x"],
        "y": colours_of_runs("xy")["y"],
    }
    colours = colours_of_priorities([224, 32, 96])
    assert len(set(colours.values())) == 3
    assert colours_of_priorities(range(256)).keys() == set(range(256))


def test_membership_shows_every_view_and_every_end() -> None:
    (axes,) = draw_membership(lanes("run")).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a#1", "b#1", "c#1", "d#1"]
    assert len(axes.patches) == 6
    assert len({patch.get_facecolor() for patch in axes.patches}) == 2
    assert [text.get_text() for text in axes.texts] == ["1", "2", "1", "2", "1", "2"]
    marks = [line.get_marker() for line in axes.lines]
    assert marks == ["s", "X", "^"]


def test_membership_of_runs_with_one_view_is_not_drawn() -> None:
    still = replace(lanes("still")[0], attendances=lanes("still")[0].attendances[:1])
    assert lanes_of_changing_runs([still, *lanes("changing")]) == lanes("changing")


def test_run_that_took_no_time_can_be_drawn() -> None:
    lane = replace(lanes("run")[0], attendances=(), end_s=0.0)
    assert render_svg(draw_membership([lane]))


def test_queues_of_two_incarnations_of_a_member_are_distinguishable() -> None:
    depths = [QueueDepth("run", process, 0.1, (1, 2)) for process in ("a#1", "b#1", "a#2")]
    (axes,) = draw_queue_depth(depths).axes
    assert [line.get_label() for line in axes.lines] == ["run (at a#1)", "run (at b)", "run (at a#2)"]


def test_ordering_time_has_a_line_for_each_protocol_over_the_sizes() -> None:
    (axes,) = draw_ordering_times(ORDERING).axes
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(lines) == ["raw", "skeen", "reorder"]
    points: Any = lines["skeen"].get_xydata()
    assert points.tolist() == [[2, 2], [4, 4], [8, 8]]
    assert lines["raw"].get_marker() == "None"
    assert len({lines[way].get_marker() for way in ("skeen", "reorder")}) == 2


def test_execution_time_has_a_line_for_each_group_over_the_sizes() -> None:
    indication, confirmation = draw_over_sizes([time for time in EXECUTION if time.way == "reliable"]).axes
    assert [line.get_label() for line in indication.lines] == ["2 members", "4 members"]
    points: Any = indication.lines[1].get_xydata()
    assert points.tolist() == [[64, 4], [1024, 4]]
    confirmed: Any = confirmation.lines[1].get_xydata()
    assert confirmed.tolist() == [[64, 8], [1024, 8]]


def test_execution_time_has_a_line_for_each_quality_over_the_members() -> None:
    (axes,) = draw_over_members([time for time in EXECUTION if time.size == 64]).axes
    lines = {str(line.get_label()): line for line in axes.lines}
    points: Any = lines["atomic"].get_xydata()
    assert points.tolist() == [[2, 4], [4, 8]]
    assert [lines[way].get_color() == INK for way in lines] == [True, False, False]
