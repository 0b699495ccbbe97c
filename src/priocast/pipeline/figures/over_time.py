"""Figures over the time of a run: messages delivered per second, and messages that waited."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from priocast.pipeline.figures.style import (
    add_legend_above,
    colours_of_runs,
    height_with_legend,
    line_of,
    lines_of_runs,
    new_figure,
    styled,
)
from priocast.pipeline.membership import name_of
from priocast.pipeline.tables.queue_depth import QueueDepth
from priocast.pipeline.tables.throughput import Throughput

_HEIGHT = 3.3


@styled
def draw_throughput(throughputs: Sequence[Throughput]) -> Figure:
    """Messages delivered per second at the slowest member, over time."""
    runs = [throughput.run for throughput in throughputs]
    colours, lines = colours_of_runs(runs), lines_of_runs(runs)
    figure, (axes,) = new_figure(height_with_legend(_HEIGHT, runs))
    for run, throughput in zip(runs, throughputs, strict=True):
        times = [(index + 0.5) * throughput.slice_s for index in range(len(throughput.over_time))]
        axes.plot(times, throughput.over_time, lines[run], color=colours[run], label=run)
    axes.set_ylabel("messages per second\nat the slowest member")
    _finish(figure)
    return figure


@styled
def draw_queue_depth(depths: Sequence[QueueDepth]) -> Figure:
    """The maximum queue depth where the order is decided, over time; one line for each queue."""
    colours = colours_of_runs(depth.run for depth in depths)
    labels = _queue_names(depths)
    figure, (axes,) = new_figure(height_with_legend(_HEIGHT, labels.values()))
    drawn: dict[str, int] = {}
    for depth in depths:
        times = [(index + 0.5) * depth.slice_s for index in range(len(depth.over_time))]
        style = line_of(drawn.get(depth.run, 0))
        drawn[depth.run] = drawn.get(depth.run, 0) + 1
        label = labels[depth.run, depth.process]
        axes.plot(times, depth.over_time, style, color=colours[depth.run], label=label)
    axes.set_ylabel("messages waiting\nto be ordered")
    _finish(figure)
    return figure


def _queue_names(depths: Sequence[QueueDepth]) -> dict[tuple[str, str], str]:
    """The owner of each queue: the member, and its incarnation if several of them had a queue."""
    incarnations = Counter((depth.run, name_of(depth.process)) for depth in depths)
    return {
        (
            depth.run,
            depth.process,
        ): f"{depth.run} (at {name if incarnations[depth.run, name] == 1 else depth.process})"
        for depth in depths
        for name in [name_of(depth.process)]
    }


def _finish(figure: Figure) -> None:
    (axes,) = figure.axes
    axes.set_xlabel("time in the run (s)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    add_legend_above(axes)
