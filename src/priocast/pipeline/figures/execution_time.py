"""Figures of how long the qualities of service take, by message and group size (xAMp, Figures 7 to 9)."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from priocast.pipeline.figures.style import (
    INK,
    add_legend_above,
    colours_of_runs,
    line_of,
    new_figure,
    styled,
    use_log_milliseconds,
)

_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")


class MeasuredTime(NamedTuple):
    """The median times of one way of sending; `compared` ones are drawn without marks."""

    way: str
    members: int
    size: int
    indication_ms: float
    confirmation_ms: float
    compared: bool = False


@styled
def draw_over_sizes(times: Sequence[MeasuredTime]) -> Figure:
    """Indication and confirmation of one way over the message size, a line for each number of members."""
    figure, panels = new_figure(3.4, 2)
    members = sorted({time.members for time in times})
    colours = colours_of_runs(map(str, members))
    for axes, title in zip(panels, ("indication at the last recipient", "confirmation"), strict=True):
        for index, count in enumerate(members):
            of_group = sorted(time for time in times if time.members == count)
            of_group.sort(key=lambda time: time.size)
            values = [
                time.confirmation_ms if title == "confirmation" else time.indication_ms for time in of_group
            ]
            axes.plot(
                [time.size for time in of_group],
                values,
                color=colours[str(count)],
                marker=_MARKS[index % len(_MARKS)],
                label=f"{count} members",
            )
        axes.set_title(title)
        _use_sizes(axes, sorted({time.size for time in times}))
    panels[0].set_ylabel("ms")
    panels[0].set_ylim(bottom=0)
    panels[-1].legend(loc="upper left")
    return figure


@styled
def draw_over_members(times: Sequence[MeasuredTime]) -> Figure:
    """The indication of all ways of sending over the number of members, for messages of one size."""
    ways = list(dict.fromkeys(time.way for time in times))
    colours = colours_of_runs(ways)
    figure, (axes,) = new_figure(4.6)
    for index, way in enumerate(ways):
        of_way = sorted((time.members, time.indication_ms) for time in times if time.way == way)
        compared = any(time.compared for time in times if time.way == way)
        counts, values = zip(*of_way, strict=True)
        axes.plot(
            counts,
            values,
            color=INK if compared else colours[way],
            marker="" if compared else _MARKS[index % len(_MARKS)],
            linestyle=line_of(2) if compared else line_of(index // len(set(colours.values()))),
            label=way,
        )
    use_log_milliseconds(axes, "y")
    axes.xaxis.set_major_locator(FixedLocator(sorted({time.members for time in times})))
    axes.set_xlabel("members")
    axes.set_ylabel("indication at the last recipient (ms)")
    add_legend_above(axes)
    return figure


def _use_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("message size (bytes)")
