"""`priocast explore`: a model checker. It visits every reachable state of a small group and checks each."""

import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.option_checks import first_given
from priocast.compiled import is_compiled, restart_with_sources
from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.exploration.counterexample import Counterexample
from priocast.exploration.explorer import Exploration, ExplorationProgress
from priocast.exploration.explorer import explore as search
from priocast.exploration.scenario import ExplorationScenario, parse_messages
from priocast.exploration.standard_scenarios import standard_scenarios
from priocast.protocols.flow import ordering_protocol

EXAMPLES = """
[bold]Examples[/]

  priocast explore --order reorder --processes 3 --messages "a:low b:high c:low"

  priocast explore --order reorder --processes 2 --messages "a:low b:high b:low" --distributed --view-ends

  priocast explore --order sequencer-ub --processes 2 --messages "a:7 b:200" --free-turns

  priocast explore --order reorder --all
"""
#: The counts printed for a scenario, and the widths of their columns: less than 80 characters in all.
_COLUMNS = {
    "states": 12,
    "transitions": 13,
    "final": 9,
    "depth": 7,
    "view changes": 18,
    "seconds": 9,
    "states/s": 10,
}


def explore(
    context: typer.Context,
    order: Annotated[str, typer.Option(help="The ordering protocol (see 'priocast orders').")] = "reorder",
    processes: Annotated[int, typer.Option(help="Number of members, named a, b, c, …")] = 2,
    messages: Annotated[
        str,
        typer.Option(
            help="What is broadcast: sender:priority for each message (low, middle, high, 0 to 255)."
        ),
    ] = "a:low b:high",
    distributed: Annotated[
        bool,
        typer.Option("--distributed", help="reorder: members answer to all members, not only to the sender."),
    ] = False,
    overtakes_max: Annotated[
        int | None,
        typer.Option(help="reorder: how many messages may overtake one.", show_default="no limit"),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Ignore priorities: first in, first out.")] = False,
    free_turns: Annotated[
        bool,
        typer.Option(
            "--free-turns", help="Explore every delay of a member's turn, so that inputs form batches."
        ),
    ] = False,
    view_ends: Annotated[
        bool, typer.Option("--view-ends", help="In each state, explore a view change for every member.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Explore the standard scenarios of the protocol.")
    ] = False,
) -> None:
    """Explore every interleaving of a small group and check every reachable state (model checking).

    Runs the shipped protocol over lossless links. Broadcasts, packet arrivals and deliveries are interleaved
    in every possible order. Prints the number of states, and the shortest counterexample for the first
    violation found. Exit code 1: a violation was found.
    """
    if is_compiled(ordering_protocol):
        restart_with_sources()  # compiled classes do not show their state
    options = OrderingOptions(distributed=distributed, overtakes_max=overtakes_max, prioritised=not plain)
    if everything:
        given = first_given(context, except_for=("order", "everything"))
        if given is not None:
            raise InvalidOption(f"--all explores fixed scenarios: omit {given}, or omit --all")
        scenarios = list(standard_scenarios(order))
    else:
        chosen = parse_messages(messages)
        scenarios = [
            ExplorationScenario(
                order=order,
                processes=processes,
                messages=chosen,
                options=options,
                free_turns=free_turns,
                view_ends=view_ends,
            )
        ]
    if not _explore_all(scenarios, Console()):
        raise typer.Exit(EXIT_VIOLATION)


def _explore_all(scenarios: Sequence[ExplorationScenario], console: Console) -> bool:
    """Explore the scenarios in turn, up to the first violation; return whether all guarantees hold."""
    seen: list[tuple[Exploration, float]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[states]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("", total=None, states="")
        for number, scenario in enumerate(scenarios, 1):
            title = f"{number}/{len(scenarios)} {scenario}"

            def show(reached: ExplorationProgress, title: str = title) -> None:
                states = f"{reached.explored:,} of {reached.states:,} known states, depth {reached.depth}"
                progress.update(
                    bar,
                    description=title,
                    completed=reached.explored,
                    total=reached.states,
                    states=states,
                )

            started = time.perf_counter()
            exploration = search(scenario, show)
            seen.append((exploration, time.perf_counter() - started))
            if exploration.counterexample is not None:
                break
    _print_table(seen, console)
    found = seen[-1][0].counterexample
    if found is not None:
        _print_counterexample(found, console)
    return found is None


def _print_table(seen: Sequence[tuple[Exploration, float]], console: Console) -> None:
    """Print a line with the verdict and the scenario, and below it the counts; both fit 80 columns."""
    console.print(_in_columns([*_COLUMNS]), style="dim", highlight=False, soft_wrap=True)
    for each, seconds in seen:
        verdict = "holds" if each.counterexample is None else each.counterexample.violation.guarantee
        style = "green" if each.counterexample is None else "red"
        console.print(f"[{style}]{verdict}[/]: {each.scenario}", highlight=False, soft_wrap=True)
        counts = (each.states, each.transitions, each.terminal_states, each.depth, each.view_ends)
        cells = (*(f"{count:,}" for count in counts), f"{seconds:.1f}", f"{each.states / seconds:,.0f}")
        console.print(_in_columns(cells), highlight=False, soft_wrap=True)
    states, seconds = sum(each.states for each, _ in seen), sum(seconds for _, seconds in seen)
    transitions = sum(each.transitions for each, _ in seen)
    if len(seen) > 1:
        console.print(f"total: {states:,} states, {transitions:,} transitions, {seconds:.1f} s")


def _in_columns(cells: Sequence[str]) -> str:
    return "".join(cell.rjust(width) for cell, width in zip(cells, _COLUMNS.values(), strict=True))


def _print_counterexample(found: Counterexample, console: Console) -> None:
    console.print()
    for number, line in enumerate(found.steps, 1):
        console.print(f"{number:4}  {line}", markup=False, highlight=False, soft_wrap=True)
    console.print(str(found.violation), style="red", markup=False, highlight=False, soft_wrap=True)
