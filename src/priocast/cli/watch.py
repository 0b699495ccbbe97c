"""`priocast watch`: follow the traces of running groups on Spark."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from priocast.cli.exit_codes import EXIT_INVALID, EXIT_VIOLATION
from priocast.cli.json_output import print_json_line
from priocast.cli.option_checks import check_pipeline, check_seconds
from priocast.cli.shared_options import MASTER, Master
from priocast.operations.visible_text import visible

if TYPE_CHECKING:
    from priocast.core.violation import Violation
    from priocast.pipeline.live.live_figures import LiveFigures
    from priocast.pipeline.live.watching import LiveUpdate

EXAMPLES = """
[bold]Examples[/]

  priocast watch runs/tickets                     (while members run with --trace runs/tickets)

  priocast watch runs --stop-at-violation

  priocast watch runs/tickets --seconds 60 --json | jq .violations

  priocast watch hdfs://host/runs --master spark://host:7077
"""
_VIOLATIONS_SHOWN = 10


def watch(
    location: Annotated[
        str,
        typer.Argument(
            help="A run directory, a directory of run directories, or the URL of one.", show_default=False
        ),
    ],
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop after this time, once what is being read is judged.",
            show_default="when all members have",
            callback=check_seconds,
        ),
    ] = None,
    stop_at_violation: Annotated[
        bool, typer.Option("--stop-at-violation", help="Stop at the first violation.")
    ] = False,
    master: Master = MASTER,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document per update.")] = False,
) -> None:
    """Watch groups that run with a trace: rates, delivery times, inversions, views, and violations.

    A streaming query reads the segments of the traces as members write them, every two seconds. At once it
    checks total order, FIFO among equals, and that messages were broadcast; the other guarantees need whole
    traces: see 'priocast verify'. In the orders that re-order queues ('reorder', 'reorder-locks') members
    that deliver different messages at one position are reported when both are in a later view, or when
    watching ends, as undecided if the view still stands: a member that drops out of it may differ. It ends
    when all members have stopped. Exit code 0: nothing is wrong so far; 1: a guarantee is violated; 2: a
    conflict is undecided, nothing was read, the traces cannot be read, or Spark cannot run.
    """
    check_pipeline()
    from priocast.pipeline.live.watching import watch_runs  # imported here: Spark is slow to import

    found: list[Violation] = []
    undecided: list[Violation] = []
    console = Console(quiet=as_json)
    with Live(Text("starting Spark …"), console=console, auto_refresh=False, transient=True) as live:
        show = _as_json if as_json else _on_terminal(live) if console.is_terminal else _as_lines(console)

        def on_update(update: "LiveUpdate") -> bool:
            found.extend(update.violations)
            undecided.extend(update.undecided)
            show(update, found)
            return not (stop_at_violation and found)

        try:
            watch_runs(location, on_update, master, seconds)
        except KeyboardInterrupt:
            _print_undecided(console, undecided)
            raise
    _print_end(console, found, undecided)
    if found:
        raise typer.Exit(EXIT_VIOLATION)
    if undecided:
        raise typer.Exit(EXIT_INVALID)


def _as_json(update: "LiveUpdate", _: "list[Violation]") -> None:
    print_json_line(update)


def _on_terminal(live: Live) -> "Callable[[LiveUpdate, list[Violation]], None]":
    """One screen that is drawn anew with each update."""
    newest: dict[str, LiveFigures] = {}

    def show(update: "LiveUpdate", found: "list[Violation]") -> None:
        newest.update((figures.run, figures) for figures in update.figures)
        wrong = [Text(visible(str(violation)), "red") for violation in found[:_VIOLATIONS_SHOWN]]
        live.update(Group(*map(_screen, newest.values()), *wrong), refresh=True)

    return show


def _screen(figures: "LiveFigures") -> RenderableType:
    order = f"view {figures.view}, {figures.order}" if figures.view else "no view yet"
    title = f"{figures.run}: {order}, {figures.delivered:,} deliveries"
    table = Table("priority", title=escape(visible(title)), title_justify="left")
    for name in ("messages", "p50", "p99", "less urgent ones first"):
        table.add_column(name, justify="right")
    for each in figures.priorities:
        times = (f"{each.p50_ms:.2f} ms", f"{each.p99_ms:.2f} ms")
        table.add_row(str(each.priority), f"{each.count:,}", *times, f"{each.inversions:,}")
    return Group(table, Text(f"deliveries/s: {_rates(figures)}", "dim"))


def _as_lines(console: Console) -> "Callable[[LiveUpdate, list[Violation]], None]":
    """One line for each run and update, and for each violation."""

    def show(update: "LiveUpdate", _: "list[Violation]") -> None:
        for figures in update.figures:
            times = ", ".join(
                f"priority {each.priority} p50 {each.p50_ms:.2f} p99 {each.p99_ms:.2f} ms"
                for each in figures.priorities
            )
            line = (
                f"{figures.run}: view {figures.view}, {figures.delivered:,} deliveries, {_rates(figures)} /s"
            )
            console.print(visible(f"{line}; {times}"), markup=False, highlight=False, soft_wrap=True)
        for style, violations in (("red", update.violations), ("yellow", update.undecided)):
            for each in violations:
                console.print(visible(str(each)), style=style, markup=False, highlight=False, soft_wrap=True)

    return show


def _rates(figures: "LiveFigures") -> str:
    return ", ".join(f"{process} {rate:,.0f}" for process, rate in figures.rates.items()) or "none"


def _print_end(console: Console, found: "list[Violation]", undecided: "list[Violation]") -> None:
    _print_first(console, "[bold red]{:,} violations[/], the first of them:", found)
    _print_undecided(console, undecided)
    if not found and not undecided:
        console.print("[green]nothing is wrong so far[/]; 'priocast verify' checks the whole trace")


def _print_undecided(console: Console, undecided: "list[Violation]") -> None:
    what = "[bold yellow]{:,} conflicts are undecided[/], because their views still stand; the first of them:"
    _print_first(console, what, undecided)


def _print_first(console: Console, what: str, violations: "list[Violation]") -> None:
    if violations:
        console.print(what.format(len(violations)))
        console.print(visible(str(violations[0])), markup=False, highlight=False, soft_wrap=True)
