"""`priocast study preemption`: an urgent command in the middle of queues of hundreds, executed next."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.running import duration, prepare_output, print_verdict, progress_bar, study_traces
from priocast.study.preemption import RUNS, Drill, FinishedDrill, PlannedDrill, carry_out

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult

EXAMPLES = """
[bold]Examples[/]

  priocast study preemption

  priocast study preemption --members 6 --commands 400

  priocast study preemption --handling-ms 20 --json
"""
EXIT_VIOLATED = 1
_DEFAULT = Drill()


def preemption(
    members: Annotated[int, typer.Option(help="How many replicas.")] = _DEFAULT.members,
    commands: Annotated[
        int, typer.Option(help="How many commands they broadcast at once.")
    ] = _DEFAULT.commands,
    handling_ms: Annotated[
        float, typer.Option(help="How long a replica executes a command.")
    ] = _DEFAULT.handling_ms,
    out: Annotated[Path, typer.Option(help="Where traces and report go.")] = Path("study-out/preemption"),
    master: Annotated[str, typer.Option(help="The Spark master.")] = "local[*]",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Broadcast an urgent command while hundreds are queued, and see when each replica executes it.

    Every replica executes one command after the other. With reorder the urgent one overtakes what is queued
    at the replicas; with sequencer-ub what waits for its place, but not what the window has let in; plain, it
    waits for all. Spark then checks every promise on the traces.
    """
    drill = Drill(members=members, commands=commands, handling_ms=handling_ms)
    output = prepare_output(out)
    console = Console(stderr=as_json)
    finished = [_run(planned, drill, output.traces, console) for planned in RUNS]
    outcome = study_traces(output, master, console)
    if as_json:
        document = {
            "drill": drill,
            "runs": finished,
            "broken": [f"{verdict.run}: {verdict.guarantee}" for verdict in outcome.broken],
            "report": str(outcome.report),
        }
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        _show(finished, drill, outcome, console)
    if outcome.broken or not all(run.same_digest for run in finished):
        raise typer.Exit(EXIT_VIOLATED)


def _run(planned: PlannedDrill, drill: Drill, traces: Path, console: Console) -> FinishedDrill:
    with progress_bar(console) as progress:
        task = progress.add_task(planned.title, total=drill.commands + 1)
        return asyncio.run(
            carry_out(planned, drill, traces, lambda executed: progress.update(task, completed=executed))
        )


def _show(finished: list[FinishedDrill], drill: Drill, outcome: "StudyResult", console: Console) -> None:
    console.print(_table(finished, drill))
    for run in finished:
        begun = max(replica.began for replica in run.replicas)
        waited = duration(max(replica.waited_ms for replica in run.replicas))
        next_one = "[bold]next[/] at every replica" if not begun else f"after {begun} more commands"
        console.print(f"{run.title}: executed {next_one}, within {waited}.")
    if not all(run.same_digest for run in finished):
        console.print("[bold red]Replicas ended in different states.[/]")
    print_verdict(outcome, console)


def _table(finished: list[FinishedDrill], drill: Drill) -> Table:
    title = f"an urgent command among {drill.commands} others of {drill.handling_ms:g} ms each"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("order", no_wrap=True)
    table.add_column("")
    for heading in (
        "begun\nbefore it",
        "begun by\nnobody",
        "executed\nafter",
        "longest\nstall",
        "overtook\n",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in finished:
        for place, replica in enumerate(run.replicas):
            table.add_row(
                run.title if place == 0 else "",
                replica.replica,
                str(replica.began),
                str(run.avoidable) if place == 0 else "",
                duration(replica.waited_ms),
                duration(replica.longest_stall_ms) if replica.longest_stall_ms else "",
                str(run.overtaken) if place == 0 else "",
            )
        table.add_section()
    table.caption = "begun before it: between its broadcast and its execution"
    return table
