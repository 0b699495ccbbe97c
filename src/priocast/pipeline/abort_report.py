"""The report of the study of aborts: what priorities avoid, and what the others pay."""

from collections.abc import Sequence
from pathlib import Path

from priocast.pipeline.figures.abort_rates import draw_abort_rates
from priocast.pipeline.figures.figure_files import write_figure
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import Content, Html, element, figure, table
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.tables.aborts import AbortRates, abort_rates


def study_abort_rates(
    transactions: Path, out: Path, master: str = LOCAL, progress: Progress = ignore_progress
) -> list[AbortRates]:
    """Measure the transactions of a study; write the report and the figure `abort-rates` to `out`."""
    progress("starting Spark")
    with spark_session(master) as spark:
        progress("counting aborts")
        rates = abort_rates(spark, transactions)
    progress("writing the report")
    drawn = draw_abort_rates(rates)
    write_figure("abort-rates", drawn, out)
    write_page(render_aborts(rates, Html(render_svg(drawn))), out / "report.html")
    return rates


def avoided_of_all(rates: Sequence[AbortRates]) -> float | None:
    """The share of all avoidable aborts that were avoided; None if there were none."""
    avoidable = sum(each.plain - each.best for each in rates)
    return sum(each.plain - each.prioritised for each in rates) / avoidable if avoidable > 0 else None


def render_aborts(rates: Sequence[AbortRates], drawing: Html) -> str:
    """The whole page."""
    share = avoided_of_all(rates)
    banner = (
        "No abort was avoidable."
        if share is None
        else f"Priorities avoided {share:.0%} of the avoidable aborts."
    )
    return page(
        "Priocast report: aborts",
        element("h1", "Aborts under integrity constraints"),
        element("div", banner, css="banner good"),
        figure(
            drawing.text,
            "Aborted transactions. Dotted: the best order of each round, which no order undercuts.",
        ),
        table(
            [
                "workload",
                "database",
                "replicas",
                "rate",
                "transactions",
                "plain",
                "prioritised",
                "best",
                "avoided",
                "favoured p50",
                "others p50",
                "others p99",
            ],
            map(_cells, rates),
            numbers_from=2,
        ),
    )


def _cells(row: AbortRates) -> list[Content]:
    def change(name: str, value: str) -> str:
        plain, prioritised = (
            getattr(row.times[variant][name], value) for variant in ("plain", "prioritised")
        )
        return f"{plain:.1f} → {prioritised:.1f} ms"

    avoided = "-" if row.avoided is None else f"{row.avoided:.0%}"
    return [
        row.workload,
        row.database,
        row.replicas,
        row.rate,
        row.transactions,
        *(f"{count / row.transactions:.1%}" for count in (row.plain, row.prioritised, row.best)),
        avoided,
        change("favoured", "median_ms"),
        change("others", "median_ms"),
        change("others", "p99_ms"),
    ]
