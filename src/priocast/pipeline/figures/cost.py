"""Figures of the cost study: delivery times over the rate, with those of the paper, and memory over time."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from priocast.pipeline.cost_paper import PAPER, SHORT_NAMES, column_of
from priocast.pipeline.figures.style import (
    colours_of_runs,
    line_of,
    new_figure,
    styled,
    use_log_milliseconds,
)
from priocast.pipeline.tables.cost import CostRow, MemoryLine

_MARKS = {"plain": "o", "prioritised": "s"}
_LEGEND_COLUMNS = 4


@styled
def draw_delivery_times(rows: Sequence[CostRow]) -> Figure:
    """Cells of one group size: medians on the left, means on the right; the paper's values are dotted."""
    columns = list(dict.fromkeys((row.order, row.variant) for row in rows))
    colours = colours_of_runs(f"{order} {variant}" for order, variant in columns)
    figure, panels = new_figure(4.4, 2)
    for axes, statistic in zip(panels, ("median", "mean"), strict=True):
        for order, variant in columns:
            of_column = sorted(
                (row for row in rows if (row.order, row.variant) == (order, variant)), key=_rate
            )
            colour, mark = colours[f"{order} {variant}"], _MARKS[variant]
            axes.plot(
                [row.rate for row in of_column],
                [getattr(row, f"{statistic}_ms") for row in of_column],
                color=colour,
                marker=mark,
                label=label_of(order, variant),
            )
            axes.plot(*_of_paper(of_column, statistic), color=colour, marker=mark, ms=3, lw=1, ls=line_of(2))
        axes.set_title(f"{statistic} delivery time, {rows[0].members} members")
        axes.set_xlabel("messages/s and member")
        axes.xaxis.set_major_locator(FixedLocator(sorted({row.rate for row in rows})))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        use_log_milliseconds(axes, "y")
    panels[0].set_ylabel("ms")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False)
    return figure


@styled
def draw_memory(lines: Sequence[MemoryLine]) -> Figure:
    """The resident memory of the members over time, in groups of one size: a panel for each rate."""
    rates = sorted({line.rate for line in lines})
    columns = list(dict.fromkeys((line.order, line.variant) for line in lines))
    colours = colours_of_runs(order for order, _ in columns)
    figure, panels = new_figure(3.3, len(rates), share_x=False)
    for axes, rate in zip(panels, rates, strict=True):
        for line in (each for each in lines if each.rate == rate):
            style = line_of(list(_MARKS).index(line.variant))
            label = label_of(line.order, line.variant)
            axes.plot(line.seconds, line.mean_mib, style, color=colours[line.order], label=label)
        axes.set_title(f"{rate} messages/s and member")
        axes.set_xlabel("time after the warm-up (s)")
    panels[0].set_ylabel("resident memory of a member (MiB)")
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False)
    return figure


def label_of(order: str, variant: str) -> str:
    """The name of a column: as in the paper, if it is there."""
    name = SHORT_NAMES.get(order, order)
    return f"{name} prio" if variant == "prioritised" else name


def _of_paper(rows: Sequence[CostRow], statistic: str) -> tuple[list[int], list[float]]:
    found = [
        (row.rate, getattr(paper.delivery_ms[column], statistic))
        for row in rows
        if (paper := PAPER.get((row.members, row.rate))) is not None
        and (column := column_of(row.order, row.variant)) is not None
    ]
    return [rate for rate, _ in found], [value for _, value in found]


def _rate(row: CostRow) -> int:
    return row.rate
