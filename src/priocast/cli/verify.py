"""`priocast verify`: check every guarantee on recorded runs, on Spark."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from priocast.cli.exit_codes import EXIT_INVALID, EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_pipeline
from priocast.cli.shared_options import MASTER, AsJson, Master
from priocast.cli.verdict_output import print_verdicts, show_progress

if TYPE_CHECKING:
    from priocast.pipeline.results import Verification

EXAMPLES = """
[bold]Examples[/]

  priocast verify runs/demo

  priocast verify runs --json | jq '.verdicts[] | select(.promised and .violations > 0)'

  priocast verify hdfs://host/runs --master spark://host:7077
"""


def verify(
    location: Annotated[
        str,
        typer.Argument(
            help="A run directory, a directory of run directories, or the URL of one.", show_default=False
        ),
    ],
    master: Master = MASTER,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=1, help="Most violations to print per guarantee.")] = 10,
) -> None:
    """Verify the guarantees of recorded runs.

    Reads the traces of all members and checks integrity, total order, agreement, uniformity, view synchrony,
    FIFO among equals, priority and priority accounting of each run, and what its qualities of service
    promise. Exit code 0: every promised guarantee holds; 1: at least one is violated; 2: one cannot be
    decided, because it compares the clocks of members and they cannot be compared; or the traces cannot be
    read, or Spark cannot run.
    """
    check_pipeline()
    from priocast.pipeline import verify_runs  # imported here: Spark is slow to import

    with show_progress(quiet=as_json) as progress:
        verification = verify_runs(location, master, limit, progress)
    if as_json:
        print_json(_document(verification))
    else:
        print_verdicts(Console(), verification)
    if verification.broken:
        raise typer.Exit(EXIT_VIOLATION)
    if verification.undecided:
        raise typer.Exit(EXIT_INVALID)


def _document(verification: "Verification") -> dict[str, object]:
    return {
        "holds": not verification.broken and not verification.undecided,
        "events": verification.events,
        "runs": [
            {"run": run.name, "location": run.location, "events": run.events} for run in verification.runs
        ],
        "verdicts": verification.verdicts,
    }
