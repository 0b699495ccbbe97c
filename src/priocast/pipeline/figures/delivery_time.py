"""Figures of delivery time: the whole distribution by priority, and the 99th percentiles of all runs."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from priocast.pipeline.figures.style import (
    INK,
    RUNS_BY_COLOUR,
    add_legend_above,
    colours_of_priorities,
    colours_of_runs,
    new_figure,
    styled,
    use_log_milliseconds,
)
from priocast.pipeline.tables.delivery_time import DeliveryTime, name_of

_SHORTEST_MS = 0.001  # shorter times cannot be shown on a logarithmic axis
_ROW_HEIGHT = 0.26
_LEFT_OUT = 0.01  # the fastest 1 % would stretch the axis and show nothing


@styled
def draw_distributions(times: Sequence[DeliveryTime]) -> Figure:
    """One panel for each run: the share of each priority's messages that was delivered within a time."""
    runs = list(dict.fromkeys(time.run for time in times))
    colours = colours_of_priorities(time.priority for time in times)
    figure, panels = new_figure(3.8, panels=len(runs))
    for run, axes in zip(runs, panels, strict=True):
        for time in sorted((time for time in times if time.run == run), key=lambda time: -time.priority):
            shares, within_ms = zip(*time.curve, strict=True)
            axes.plot(
                [max(milliseconds, _SHORTEST_MS) for milliseconds in within_ms],
                shares,
                color=colours[time.priority],
                label=time.name,
            )
        axes.set_title(run)
        axes.set_xlabel("delivery time (ms, logarithmic)")
        use_log_milliseconds(axes, "x")
        axes.tick_params(axis="x", labelsize=8.5, labelbottom=True)
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    panels[0].set_ylabel("messages delivered within")
    earliest_ms = min(within_ms for time in times for share, within_ms in time.curve if share >= _LEFT_OUT)
    panels[0].set_xlim(left=max(earliest_ms / 1.5, _SHORTEST_MS))
    _share_legend(figure, panels)
    return figure


@styled
def draw_p99(times: Sequence[DeliveryTime]) -> Figure:
    """The 99th percentile of each priority: the runs side by side, or below each other if there are many."""
    runs = list(dict.fromkeys(time.run for time in times))
    return _draw_p99_bars(times, runs) if len(runs) <= RUNS_BY_COLOUR else _draw_p99_rows(times, runs)


def _draw_p99_bars(times: Sequence[DeliveryTime], runs: list[str]) -> Figure:
    priorities = sorted({time.priority for time in times})
    colours = colours_of_runs(runs)
    p99_ms = {(time.run, time.priority): max(time.p99_ms, _SHORTEST_MS) for time in times}
    figure, (axes,) = new_figure(3.6)
    width = 0.8 / len(runs)
    for index, run in enumerate(runs):
        known = [
            (column, p99_ms[run, level]) for column, level in enumerate(priorities) if (run, level) in p99_ms
        ]
        middles = [column + (index - (len(runs) - 1) / 2) * width for column, _ in known]
        heights = [height for _, height in known]
        bars = axes.bar(middles, heights, width * 0.92, color=colours[run], label=run, zorder=2)
        axes.bar_label(bars, [_brief(height) for height in heights], padding=2, fontsize=9)
    use_log_milliseconds(axes, "y")
    axes.set_ylim(min(p99_ms.values()) / 3, max(p99_ms.values()) * 2.2)
    axes.set_xticks(range(len(priorities)), [name_of(priority) for priority in priorities])
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("99th percentile (ms, logarithmic)")
    add_legend_above(axes)
    return figure


def _draw_p99_rows(times: Sequence[DeliveryTime], runs: list[str]) -> Figure:
    """A line from a run's lowest to its highest value, with a point for each priority in its colour."""
    colours = colours_of_priorities(time.priority for time in times)
    figure, (axes,) = new_figure(1.2 + _ROW_HEIGHT * len(runs))
    for row, run in enumerate(runs):
        p99_ms = [max(time.p99_ms, _SHORTEST_MS) for time in times if time.run == run]
        axes.plot([min(p99_ms), max(p99_ms)], [row, row], color=INK, linewidth=0.8, zorder=1)
    for priority in sorted(colours, reverse=True):
        of_priority = [time for time in times if time.priority == priority]
        axes.scatter(
            [max(time.p99_ms, _SHORTEST_MS) for time in of_priority],
            [runs.index(time.run) for time in of_priority],
            color=colours[priority],
            label=name_of(priority),
            zorder=2,
        )
    use_log_milliseconds(axes, "x")
    axes.set_xlabel("99th percentile (ms, logarithmic)")
    axes.set_yticks(range(len(runs)), runs)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    add_legend_above(axes)
    return figure


def _share_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, the most urgent first."""
    entries = {
        label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=min(len(entries), 8))


def _brief(milliseconds: float) -> str:
    return f"{milliseconds:.3g}" if milliseconds < 1000 else f"{milliseconds:,.0f}"
