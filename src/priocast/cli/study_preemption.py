"""`priocast study preemption`: one urgent command among hundreds of queued ones, and when it is executed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.shared_options import MASTER, AsJson, Master, StudyDirectory
from priocast.cli.study_output import duration, prepare_output, print_verdict, progress_bar, study_traces
from priocast.study.preemption import RUNS, Drill, FinishedDrill, PlannedDrill, carry_out

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult

EXAMPLES = """
[bold]Examples[/]

  priocast study preemption

  priocast study preemption --members 6 --commands 400

  priocast study preemption --handling-ms 20 --json
"""
_DEFAULT = Drill()


def preemption(
    members: Annotated[int, typer.Option(help="Number of replicas.")] = _DEFAULT.members,
    commands: Annotated[
        int, typer.Option(help="Number of routine commands that are queued.")
    ] = _DEFAULT.commands,
    handling_ms: Annotated[
        float, typer.Option(help="Execution time of a command, in milliseconds.")
    ] = _DEFAULT.handling_ms,
    out: StudyDirectory = Path("study-out/preemption"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Broadcast an urgent command while hundreds are queued, and measure when each replica executes it.

    A replica executes one command at a time. With reorder, the urgent command overtakes all commands queued
    at the replicas; with sequencer-ub, those that are not ordered yet, but not those in the window; without
    priorities, none. Spark then verifies every guarantee on the traces. Exit code 1: a violation.
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
        print_json(document)
    else:
        _show(finished, drill, outcome, console)
    if outcome.broken or not all(run.same_digest for run in finished):
        raise typer.Exit(EXIT_VIOLATION)


def _run(planned: PlannedDrill, drill: Drill, traces: Path, console: Console) -> FinishedDrill:
    with progress_bar(console) as progress:
        task = progress.add_task(planned.title, total=drill.commands + 1)
        return carry_out(planned, drill, traces, lambda executed: progress.update(task, completed=executed))


def _show(finished: list[FinishedDrill], drill: Drill, outcome: "StudyResult", console: Console) -> None:
    console.print(_table(finished, drill))
    for run in finished:
        begun = max(replica.began for replica in run.replicas)
        waited = duration(max(replica.waited_ms for replica in run.replicas))
        after = "[bold]next[/] at every replica" if not begun else f"after {begun} other commands"
        console.print(f"{run.title}: executed {after}, within {waited}.")
    if not all(run.same_digest for run in finished):
        console.print("[bold red]Replicas executed different commands, or in different orders.[/]")
    print_verdict(outcome, console)


def _table(finished: list[FinishedDrill], drill: Drill) -> Table:
    title = f"an urgent command among {drill.commands} others of {drill.handling_ms:g} ms each"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("order", no_wrap=True)
    table.add_column("")
    for heading in (
        "started\nbefore it",
        "of these\navoidable",
        "executed\nafter",
        "longest\nstall",
        "overtook\n",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in finished:
        for index, replica in enumerate(run.replicas):
            table.add_row(
                run.title if index == 0 else "",
                replica.replica,
                str(replica.began),
                str(run.avoidable) if index == 0 else "",
                duration(replica.waited_ms),
                duration(replica.longest_stall_ms) if replica.longest_stall_ms else "",
                str(run.overtaken) if index == 0 else "",
            )
        table.add_section()
    table.caption = (
        "started before it: commands started between its broadcast and its execution; "
        "avoidable: started at no replica when it was broadcast"
    )
    return table
