"""Figures over the time of a run: how many messages a second were delivered, and how many waited."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from priocast.pipeline.figures.style import colours_of_runs, new_figure, styled
from priocast.pipeline.membership import name_of
from priocast.pipeline.tables.queue_depth import QueueDepth
from priocast.pipeline.tables.throughput import Throughput

_LINE_STYLES = ("-", "--", ":", "-.")


@styled
def draw_throughput(throughputs: Sequence[Throughput]) -> Figure:
    """Messages delivered per second at the slowest member, over time."""
    colours = colours_of_runs(throughput.run for throughput in throughputs)
    figure, (axes,) = new_figure(3.3)
    for throughput in throughputs:
        times = [(place + 0.5) * throughput.slice_s for place in range(len(throughput.over_time))]
        axes.plot(times, throughput.over_time, color=colours[throughput.run], label=throughput.run)
    axes.set_ylabel("messages per second\nat the slowest member")
    _finish(figure)
    return figure


@styled
def draw_queue_depth(depths: Sequence[QueueDepth]) -> Figure:
    """The most messages that waited where the order is decided, over time; one line a queue."""
    colours = colours_of_runs(depth.run for depth in depths)
    figure, (axes,) = new_figure(3.3)
    drawn: dict[str, int] = {}
    labels = _queue_names(depths)
    for depth in depths:
        times = [(place + 0.5) * depth.slice_s for place in range(len(depth.over_time))]
        style = _LINE_STYLES[drawn.get(depth.run, 0) % len(_LINE_STYLES)]
        drawn[depth.run] = drawn.get(depth.run, 0) + 1
        label = labels[depth.run, depth.process]
        axes.plot(times, depth.over_time, style, color=colours[depth.run], label=label)
    axes.set_ylabel("messages waiting\nfor a place in the order")
    _finish(figure)
    return figure


def _queue_names(depths: Sequence[QueueDepth]) -> dict[tuple[str, str], str]:
    """Whose queue it is: the member, and which of its lives if several had one."""
    lives = Counter((depth.run, name_of(depth.process)) for depth in depths)
    return {
        (
            depth.run,
            depth.process,
        ): f"{depth.run} (at {name if lives[depth.run, name] == 1 else depth.process})"
        for depth in depths
        for name in [name_of(depth.process)]
    }


def _finish(figure: Figure) -> None:
    (axes,) = figure.axes
    axes.set_xlabel("time in the run (s)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
