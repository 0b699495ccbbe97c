"""Runs on real processes as a person watches them, and what Spark makes of their traces."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from priocast.cli.checks import check_directory, check_pipeline, check_report
from priocast.study.earlier_runs import prepare
from priocast.study.overload import FinishedRun, PlannedRun, carry_out

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult


class Output(NamedTuple):
    """Where the traces and the report of a study go."""

    traces: Path
    report: Path


def prepare_output(directory: Path) -> Output:
    """Make sure that traces and report can be made and written, before anything is measured."""
    output = Output(directory / "traces", directory / "report.html")
    check_pipeline()
    check_directory("--out", output.traces)
    check_report("--out", output.report)
    prepare(output.traces)
    return output


def progress_bar(console: Console) -> Progress:
    """What is done, how far it is, and since when."""
    columns = (
        TextColumn("{task.description:<38}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


def run_planned(planned: PlannedRun, traces: Path, console: Console) -> FinishedRun:
    """Carry out a run, with a progress bar."""
    with progress_bar(console) as progress:
        task = progress.add_task(planned.title, total=planned.workload.total)
        return asyncio.run(
            carry_out(planned, traces, lambda delivered: progress.update(task, completed=delivered))
        )


def study_traces(output: Output, master: str, console: Console) -> "StudyResult":
    """Check and measure all runs, and write the report."""
    from priocast.pipeline.study import study_runs

    with console.status("Spark: starting") as status:
        return study_runs(output.traces, master, output.report, lambda line: status.update(f"Spark: {line}"))


def print_verdict(outcome: "StudyResult", console: Console) -> None:
    """Whether every promise was kept, and where the report is."""
    kept = "[bold green]every promise kept[/]" if not outcome.broken else "[bold red]promises broken[/]"
    console.print(f"Spark checked {outcome.events:,} events of {len(outcome.runs)} runs: {kept}.")
    for broken in outcome.broken:
        console.print(f"  [red]{broken.run}: {broken.guarantee}: {broken.violations} violation(s)[/]")
    console.print(f"The report: {outcome.report}")


def duration(milliseconds: float) -> str:
    """A time as a person reads it."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


def ratio_of(ratio: float) -> str:
    """A ratio as a person reads it."""
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:.1f} x"
