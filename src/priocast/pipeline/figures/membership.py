"""A figure of membership over time: which process was in which view when, and how it ended."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from priocast.pipeline.figures.style import INK, VIEW_COLOURS, new_column, styled
from priocast.pipeline.tables.membership import Lane

_LANE_HEIGHT = 0.34
_BAR = 0.72
_RESTORED = "#ffffff"
_ENDED = "#d7263d"
_LABEL_SHARE = 0.04  # of the width of the figure; a shorter bar has no room for the number of its view


def lanes_of_changing_runs(lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes of runs with more than one view; the others have nothing to show."""
    views: dict[str, set[str]] = defaultdict(set)
    for lane in lanes:
        views[lane.run].update(attendance.view for attendance in lane.attendances)
    return [lane for lane in lanes if len(views[lane.run]) > 1]


@styled
def draw_membership(lanes: Sequence[Lane]) -> Figure:
    """One panel for each run, one lane for each process: its views as coloured bars, and its marks."""
    of_run: dict[str, list[Lane]] = defaultdict(list)
    for lane in lanes:
        of_run[lane.run].append(lane)
    figure, panels = new_column([0.9 + _LANE_HEIGHT * len(of) for of in of_run.values()])
    for (run, of), axes in zip(of_run.items(), panels, strict=True):
        _draw_run(axes, run, of)
    _add_legend(figure)
    return figure


def _draw_run(axes: Axes, run: str, lanes: list[Lane]) -> None:
    views = sorted({(_number(at.view), at.view) for lane in lanes for at in lane.attendances})
    colours = {view: VIEW_COLOURS[index % len(VIEW_COLOURS)] for index, (_, view) in enumerate(views)}
    width_s = max(lane.end_s for lane in lanes) or 1.0
    for row, lane in enumerate(lanes):
        for at in lane.attendances:
            axes.barh(row, at.end_s - at.start_s, _BAR, at.start_s, color=colours[at.view], edgecolor="white")
            if at.end_s - at.start_s > _LABEL_SHARE * width_s:
                middle = (at.start_s + at.end_s) / 2
                axes.text(middle, row, str(_number(at.view)), ha="center", va="center", color="white")
        for restored_s in lane.restored_s:
            axes.plot(restored_s, row, "^", **_mark(_RESTORED))
        if lane.ending is not None:
            axes.plot(lane.end_s, row, "X" if lane.ending == "" else "s", **_mark(_ENDED))
    axes.set_yticks(range(len(lanes)), [lane.process for lane in lanes])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, width_s * 1.02)
    axes.set_title(run)
    axes.set_ylabel("process")
    axes.set_xlabel("time in the run (s)")


def _add_legend(figure: Figure) -> None:
    marks = {"received the state": ("^", _RESTORED), "stopped": ("s", _ENDED), "crashed": ("X", _ENDED)}
    entries = [
        Line2D([], [], marker=shape, linestyle="none", label=label, **_mark(colour))
        for label, (shape, colour) in marks.items()
    ]
    figure.legend(handles=entries, loc="outside upper right", ncols=len(entries))


def _mark(colour: str) -> dict[str, Any]:
    return {"color": colour, "markersize": 8, "markeredgecolor": INK, "clip_on": False, "zorder": 3}


def _number(view: str) -> int:
    return int(view.partition("@")[0])
