"""A figure of how long it takes to order a message, in groups of several sizes."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from priocast.pipeline.figures.style import INK, colours_of_runs, new_figure, styled

_MARKS = ("o", "s", "^", "D", "v", "P")


class OrderingTime(NamedTuple):
    """How long one protocol takes in a group of one size; `compared` ones are drawn without marks."""

    way: str
    members: int
    milliseconds: float
    compared: bool = False


@styled
def draw_ordering_times(times: Sequence[OrderingTime]) -> Figure:
    """One line for each protocol, over the number of replicas, as in the reorder paper's Figure 5."""
    ways = list(dict.fromkeys(time.way for time in times if not time.compared))
    colours = colours_of_runs(ways)
    marks = dict(zip(ways, _MARKS * len(ways), strict=False))
    figure, (axes,) = new_figure(4.2)
    for way in dict.fromkeys(time.way for time in times):
        of_way = sorted((time.members, time.milliseconds) for time in times if time.way == way)
        sizes, milliseconds = zip(*of_way, strict=True)
        if way in marks:
            axes.plot(sizes, milliseconds, color=colours[way], marker=marks[way], label=way)
        else:
            axes.plot(sizes, milliseconds, color=INK, linestyle=":", label=way)
    axes.xaxis.set_major_locator(FixedLocator(sorted({time.members for time in times})))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("replicas")
    axes.set_ylabel("until the message is ordered (ms)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure
