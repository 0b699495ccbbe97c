"""`priocast explore`: let a small group do everything that it can do, and check every state of it."""

import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from priocast.cli.checks import first_typed
from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.exploration.counterexample import Counterexample
from priocast.exploration.explorer import Exploration, ExplorationProgress
from priocast.exploration.explorer import explore as search
from priocast.exploration.scenario import ExplorationScenario, parse_messages
from priocast.exploration.standard_scenarios import standard_scenarios

EXAMPLES = """
[bold]Examples[/]:

priocast explore --order reorder --processes 3 --messages "a:low b:high c:low"

priocast explore --order reorder --processes 2 --messages "a:low b:high b:low" --distributed --view-ends

priocast explore --order sequencer-ub --processes 2 --messages "a:7 b:200" --free-turns

priocast explore --order reorder --all
"""
#: What is told of a scenario, and how wide the columns are: less than 80 characters in all.
_COLUMNS = {
    "states": 12,
    "transitions": 13,
    "at rest": 9,
    "moves": 7,
    "ends of the view": 18,
    "seconds": 9,
    "states/s": 10,
}


def explore(
    context: typer.Context,
    order: Annotated[str, typer.Option(help="The protocol.")] = "reorder",
    processes: Annotated[int, typer.Option(help="How many members there are: a, b, c, …")] = 2,
    messages: Annotated[
        str, typer.Option(help="Who says what: a member and a level (low, middle, high, 0 to 255) each.")
    ] = "a:low b:high",
    distributed: Annotated[
        bool, typer.Option("--distributed", help="Members answer to all (reorder).")
    ] = False,
    overtakes_max: Annotated[
        int | None, typer.Option(help="How many may overtake a message (reorder).", show_default="any number")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without priorities.")] = False,
    free_turns: Annotated[
        bool, typer.Option("--free-turns", help="Members act whenever they like, so that inputs gather.")
    ] = False,
    view_ends: Annotated[
        bool, typer.Option("--view-ends", help="In each state, let the view end for any of the members.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="The standard scenarios of the protocol, one after the other.")
    ] = False,
) -> None:
    """Let a small group do everything that it can do, in every order, and check every state of it.

    The protocol is the one that is shipped, on links that lose nothing. Members say their messages, packets
    arrive and applications consume, at any time. Prints how many states there are, and for the first
    violation the shortest story that leads to it. Exits with 1 if there is one.
    """
    options = OrderingOptions(distributed=distributed, overtakes_max=overtakes_max, prioritised=not plain)
    if everything:
        typed = first_typed(context, besides=("order", "everything"))
        if typed is not None:
            raise InvalidOption(
                f"--all has scenarios of its own: leave --{typed.replace('_', '-')} out, or --all"
            )
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
        raise typer.Exit(1)


def _explore_all(scenarios: Sequence[ExplorationScenario], console: Console) -> bool:
    """Explore one scenario after the other up to the first violation; return whether there was none."""
    seen: list[tuple[Exploration, float]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[states]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("", total=None, states="")
        for number, scenario in enumerate(scenarios, 1):
            title = f"{number}/{len(scenarios)} {scenario}"

            def tell(reached: ExplorationProgress, title: str = title) -> None:
                states = (
                    f"{reached.explored:,} of {reached.states:,} known states, {reached.depth} moves deep"
                )
                progress.update(
                    bar,
                    description=title,
                    completed=reached.explored,
                    total=reached.states,
                    states=states,
                )

            started = time.perf_counter()
            exploration = search(scenario, tell)
            seen.append((exploration, time.perf_counter() - started))
            if exploration.counterexample is not None:
                break
    _print_table(seen, console)
    found = seen[-1][0].counterexample
    if found is not None:
        _print_counterexample(found, console)
    return found is None


def _print_table(seen: Sequence[tuple[Exploration, float]], console: Console) -> None:
    """A line with the scenario and its verdict, and below it the numbers: both fit a narrow terminal."""
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
        console.print(f"in all: {states:,} states, {transitions:,} transitions, {seconds:.1f} s")


def _in_columns(cells: Sequence[str]) -> str:
    return "".join(cell.rjust(width) for cell, width in zip(cells, _COLUMNS.values(), strict=True))


def _print_counterexample(found: Counterexample, console: Console) -> None:
    console.print()
    for number, line in enumerate(found.steps, 1):
        console.print(f"{number:4}  {line}", markup=False, highlight=False, soft_wrap=True)
    console.print(str(found.violation), style="red", markup=False, highlight=False, soft_wrap=True)
