"""`priocast verify`: check every property of recorded runs, on Spark."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from priocast.cli.checks import check_pipeline
from priocast.cli.output import print_verdicts, show_progress

if TYPE_CHECKING:
    from priocast.pipeline.results import Verification

EXAMPLES = """
[bold]Examples[/]

  priocast verify runs/demo

  priocast verify runs --json | jq '.verdicts[] | select(.promised and .violations > 0)'

  priocast verify /shared/runs --master spark://host:7077
"""
EXIT_BROKEN = 1


def verify(
    path: Annotated[
        Path, typer.Argument(help="A run directory, or one that holds several.", show_default=False)
    ],
    master: Annotated[str, typer.Option(help="Where Spark runs: local\\[*] or a cluster.")] = "local[*]",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many violations of a property to name.")] = 10,
) -> None:
    """Check that recorded runs kept every promise.

    Reads the traces that the members wrote and checks integrity, total order, agreement, uniformity, view
    synchrony, FIFO among equals, priority and priority accounting of each run. Exits with 0 if everything
    that was promised holds, with 1 if not, and with 2 if the traces cannot be read or Spark cannot run.
    """
    check_pipeline()
    from priocast.pipeline import verify_runs  # here, because Spark is slow to import and --help is not

    with show_progress(quiet=as_json) as progress:
        verification = verify_runs(path, master, limit, progress)
    if as_json:
        typer.echo(json.dumps(_document(verification), indent=2))
    else:
        print_verdicts(Console(), verification)
    if verification.broken:
        raise typer.Exit(EXIT_BROKEN)


def _document(verification: "Verification") -> dict[str, object]:
    return {
        "holds": not verification.broken,
        "events": verification.events,
        "runs": [
            {"run": run.name, "directory": str(run.directory), "events": run.events}
            for run in verification.runs
        ],
        "verdicts": [msgspec.to_builtins(verdict) for verdict in verification.verdicts],
    }
