"""Saturation curves: what is delivered, and how long it takes, over the load that is offered."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from priocast.pipeline.figures.style import (
    INK,
    colours_of_runs,
    height_with_legend,
    lines_of_runs,
    new_figure,
    styled,
    use_log_milliseconds,
)
from priocast.pipeline.tables.saturation import SaturationRow

_LEGEND_COLUMNS = 4
Value = Callable[[SaturationRow], float | None]


@styled
def draw_saturation(rows: Sequence[SaturationRow]) -> Figure:
    """Three panels for groups that differ by order, variant and load: rate, p50 and p99."""
    curves = list(dict.fromkeys(_name(row) for row in rows))
    figure, panels = new_figure(height_with_legend(4.6, len(curves)), 3, share_y=False)
    _draw(panels[0], rows, lambda row: row.delivered_per_second)
    panels[0].set_title("delivered per second")
    offered = sorted({row.load for row in rows})
    panels[0].plot(offered, offered, color=INK, linestyle=":", linewidth=1, label="as offered")
    _draw(panels[1], rows, lambda row: row.p50_ms)
    panels[1].set_title("delivery time, p50 (ms)")
    _draw(panels[2], rows, lambda row: row.p99_ms)
    panels[2].set_title("delivery time, p99 (ms)")
    for axes in panels:
        use_log_milliseconds(axes, "x")
        use_log_milliseconds(axes, "y")
        axes.set_xlabel("offered per second")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False)
    return figure


def _draw(axes: Axes, rows: Sequence[SaturationRow], value: Value) -> None:
    curves = list(dict.fromkeys(_name(row) for row in rows))
    colours, lines = colours_of_runs(curves), lines_of_runs(curves)
    for curve in curves:
        points = [(row.load, value(row)) for row in rows if _name(row) == curve]
        drawn = [(load, found) for load, found in points if found]
        if drawn:
            axes.plot(
                *zip(*drawn, strict=True),
                color=colours[curve],
                linestyle=lines[curve],
                marker="o",
                markersize=3.5,
                linewidth=1.4,
                label=curve,
            )


def _name(row: SaturationRow) -> str:
    return row.order if row.variant == "prioritised" else f"{row.order}, {row.variant}"
