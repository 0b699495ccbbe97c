"""Abort rates over the rate of transactions: plain, prioritised, and what no order could avoid."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from priocast.pipeline.figures.style import INK, colours_of_runs, new_figure, styled
from priocast.pipeline.tables.aborts import AbortRates

_VARIANTS = ("plain", "prioritised")
_MARKS = ("o", "s", "^", "D", "v", "P")
_LEGEND_COLUMNS = 3


@styled
def draw_abort_rates(rates: Sequence[AbortRates]) -> Figure:
    """A panel for each workload; a mark for each database and number of replicas."""
    workloads = list(dict.fromkeys(each.workload for each in rates))
    groups = list(dict.fromkeys((each.database, each.replicas) for each in rates))
    colours = colours_of_runs(_VARIANTS)
    figure, panels = new_figure(4.2, len(workloads))
    for axes, workload in zip(panels, workloads, strict=True):
        for mark, group in zip(_MARKS * len(groups), groups, strict=False):
            of_group = [
                each
                for each in rates
                if each.workload == workload and (each.database, each.replicas) == group
            ]
            for variant in _VARIANTS:
                axes.plot(
                    [each.rate for each in of_group],
                    [100 * getattr(each, variant) / each.transactions for each in of_group],
                    color=colours[variant],
                    marker=mark,
                    label=f"{variant}, {group[1]} replicas, {group[0]}",
                )
        of_workload = sorted(
            {(each.rate, 100 * each.best / each.transactions) for each in rates if each.workload == workload}
        )
        axes.plot(*zip(*of_workload, strict=True), color=INK, linestyle=":", label="best order")
        axes.set_title(workload)
        axes.set_xlabel("transactions/s")
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("aborted (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False)
    return figure
