"""Output of the commands that run Spark: a bar while it works, and a table of verdicts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as StageBar
from rich.table import Table

if TYPE_CHECKING:
    from priocast.pipeline.progress import Progress
    from priocast.pipeline.results import Verification
    from priocast.pipeline.verdicts import Verdict


@contextmanager
def show_progress(quiet: bool = False, console: Console | None = None) -> Iterator["Progress"]:
    """Show the stages on standard error, as a bar with the current one; nothing if `quiet` or no terminal."""
    console = console or Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description} …"))
    hidden = quiet or not console.is_terminal
    with StageBar(*columns, console=console, transient=True, disable=hidden) as bar:
        begun = 0
        task = bar.add_task("starting", total=None)

        def show(stage: str, following: int | None = None, /) -> None:
            nonlocal begun
            begun += 1
            if following is not None:
                bar.update(task, total=begun + following)
            bar.update(task, completed=begun - 1, description=escape(stage))

        yield show


def print_verdicts(console: Console, verification: "Verification") -> None:
    """Print every verdict, then examples of each violation, then a summary line."""
    table = Table("run", "guarantee", "verdict", box=None, header_style="dim", pad_edge=False)
    table.add_column("examined", justify="right")
    for verdict in verification.verdicts:
        examined = f"{verdict.examined:,} {verdict.unit}"
        table.add_row(escape(verdict.run), verdict.guarantee, _word(verdict), examined)
    console.print(table)
    for verdict in verification.verdicts:
        if verdict.violations:
            _print_violations(console, verdict)
    console.print()
    console.print(summary_of(verification), highlight=False)


def summary_of(verification: "Verification") -> str:
    """One line: whether every promised guarantee holds, and how much was checked."""
    runs = len(verification.runs)
    checked = f"{verification.events:,} events of {runs} run{'s' if runs > 1 else ''}"
    promises = sum(verdict.promised for verdict in verification.verdicts)
    if verification.broken:
        return (
            f"[bold red]{len(verification.broken)} of {promises} promises are broken[/] ({checked} checked)"
        )
    if verification.undecided:
        return (
            f"[bold yellow]{len(verification.undecided)} of {promises} promises cannot be decided[/]: the "
            f"clocks of the members cannot be compared; the others hold ({checked} checked)"
        )
    return f"[bold green]All {promises} promises hold[/] ({checked} checked)"


def _word(verdict: "Verdict") -> str:
    if not verdict.promised:
        return "[dim]not promised[/]"
    if not verdict.decidable:
        return "[yellow]not decidable[/]"
    return "[green]holds[/]" if verdict.holds else f"[bold red]{verdict.violations:,} violations[/]"


def _print_violations(console: Console, verdict: "Verdict") -> None:
    console.print()
    console.print(
        f"[bold]{escape(verdict.run)}: {verdict.guarantee}[/] has {verdict.violations:,} "
        f"violation{'s' if verdict.violations > 1 else ''}"
    )
    for violation in verdict.examples:
        where = f"view {violation.view or '?'}, position {_number(violation.position)}"
        console.print(f"  [red]{where}[/]  {escape(_list(violation.messages))}", highlight=False)
        console.print(f"    [dim]{escape(violation.summary)}[/]", highlight=False)
    if verdict.violations > len(verdict.examples):
        console.print(f"  … and {verdict.violations - len(verdict.examples):,} more", highlight=False)


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
