"""The report of a fault-injection campaign: what was injected, noticed and tolerated."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from priocast.pipeline.checks.service_catalogue import broken_promises
from priocast.pipeline.html import Content, Html, element, table, tag
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.session import LOCAL
from priocast.pipeline.study import open_services
from priocast.pipeline.tables.fault_coverage import FaultCoverage, fault_coverage, with_totals


def study_faults(
    path: Path, master: str = LOCAL, out_html: Path | None = None, progress: Progress = ignore_progress
) -> list[FaultCoverage]:
    """Check the promises of the qualities in a campaign; with `out_html`, write the report there."""
    with open_services(path, master, progress) as trace:
        broken = broken_promises(trace.services, progress) if trace.services is not None else {}
        rows = fault_coverage(trace, broken)
    if out_html is not None:
        progress("writing the report")
        write_page(render_coverage(rows), out_html)
    return rows


def render_coverage(rows: Sequence[FaultCoverage]) -> str:
    """The whole page."""
    assumed = [row for row in rows if row.assumed]
    affected, tolerated = sum(row.affected for row in assumed), sum(row.tolerated for row in assumed)
    is_good = affected == tolerated
    banner = f"{tolerated:,} of {affected:,} runs with faults that the qualities assume kept every promise."
    return page(
        "Priocast report: fault injection",
        element("h1", "Fault injection: the coverage of the qualities of service"),
        element("div", banner, css=f"banner {'good' if is_good else 'bad'}"),
        *_part("Faults that the qualities assume", assumed),
        *_part("Faults that break what they assume", [row for row in rows if not row.assumed]),
    )


def _part(title: str, rows: Sequence[FaultCoverage]) -> Iterable[Html]:
    yield element("h2", title)
    yield element(
        "p",
        "Affected: the runs in which the fault occurred. Noticed: those in which a receipt, a view or a "
        "member shows it. Tolerated: those in which every promise of the quality held.",
        css="soft",
    )
    yield table(
        ["fault", "quality", "runs", "affected", "injected", "noticed", "tolerated", "coverage", "lost"],
        map(_cells, with_totals(rows)),
        numbers_from=2,
    )


def _cells(row: FaultCoverage) -> list[Content]:
    good = row.tolerated == row.affected
    coverage = tag(f"{row.coverage:.0%}", "good" if good else "bad" if row.assumed else "quiet")
    counts = (row.runs, row.affected, row.injected, row.noticed, row.tolerated)
    return [row.fault, row.quality, *counts, coverage, ", ".join(row.lost) or "-"]
