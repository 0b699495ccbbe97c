"""What the studies share: output directory, group sizes, progress bar, verdict, durations."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from priocast.cli.option_checks import check_directory, check_pipeline, check_replaceable
from priocast.cli.verdict_output import show_progress
from priocast.core.errors import InvalidOption
from priocast.operations.output_paths import REPORT
from priocast.study.earlier_runs import prepare
from priocast.study.overload import FinishedRun, PlannedRun, carry_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from priocast.pipeline.results import StudyResult
    from priocast.trace.weight_samples import WeightSample


class StudyOutput(NamedTuple):
    """The output paths of a study: directory of traces, report."""

    traces: Path
    report: Path


def prepare_output(directory: Path, keep: Collection[str] = ()) -> StudyOutput:
    """Check that the traces and the report can be written, and remove earlier runs, before measuring.

    The runs to `keep` stay.
    """
    output = StudyOutput(directory / "traces", directory / "report.html")
    check_pipeline()
    check_directory("--out", output.traces)
    check_replaceable("--out", output.report, REPORT)
    prepare(output.traces, keep)
    return output


def progress_bar(console: Console) -> Progress:
    """A progress bar: description, completed of total, elapsed time."""
    columns = (
        TextColumn("{task.description:<38}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


def run_planned(
    planned: PlannedRun, traces: Path, console: Console, admins: "Sequence[str]" = ()
) -> FinishedRun:
    """Carry out a run and show its progress; its members have live pages at `admins`, if there are any."""
    with progress_bar(console) as progress:
        task = progress.add_task(planned.title, total=planned.workload.total)
        return carry_out(
            planned, traces, lambda delivered: progress.update(task, completed=delivered), admins
        )


def study_traces(
    output: StudyOutput, master: str, console: Console, weights: "Sequence[WeightSample]" = ()
) -> "StudyResult":
    """Verify and measure all runs on Spark, and write the report, with weights that were sampled."""
    from priocast.pipeline.study import study_runs

    with show_progress(console=console) as progress:
        return study_runs(output.traces, master, output.report, progress, weights)


def print_verdict(outcome: "StudyResult", console: Console) -> None:
    """Print whether every guarantee held, every violation, and the path of the report."""
    promised = sum(verdict.promised for verdict in outcome.verdicts)
    kept = promised - len(outcome.broken)
    verdict = "[bold green]every promise kept[/]" if not outcome.broken else "[bold red]promises broken[/]"
    console.print(
        f"Spark checked {outcome.events:,} events of {len(outcome.runs)} runs: {verdict} "
        f"({kept} of {promised})."
    )
    for broken in outcome.broken:
        console.print(f"  [red]{broken.run}: {broken.guarantee}: {broken.violations} violation(s)[/]")
    assert outcome.report is not None
    console.print(f"Report: [link={outcome.report.resolve().as_uri()}]{outcome.report}[/link]")


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Numbers as a user writes them, such as group sizes, in ascending order."""
    try:
        return tuple(sorted({int(word) for word in text.split(",")}))
    except ValueError:
        raise InvalidOption(
            f"{option} is {text!r}: write numbers separated by commas, such as 2,4,6"
        ) from None


def duration(milliseconds: float) -> str:
    """A duration with a readable unit."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


def ratio_of(ratio: float) -> str:
    """A ratio with a readable precision."""
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:.1f} x"
