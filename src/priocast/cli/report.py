"""`priocast report`: an HTML page about recorded runs: verdicts, delivery times, figures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.option_checks import check_figures, check_pipeline, check_replaceable
from priocast.cli.shared_options import MASTER, Master
from priocast.cli.verdict_output import print_verdicts, show_progress
from priocast.operations.output_paths import REPORT

EXAMPLES = """
[bold]Examples[/]

  priocast report runs/demo

  priocast report runs --out compared.html --figures figures
"""
#: The names of the figures that `write_figures` writes.
FIGURES = ("throughput", "queue-depth", "delivery-times", "p99", "membership")


def report(
    location: Annotated[
        str,
        typer.Argument(
            help="A run directory, a directory of run directories to compare, or the URL of one.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="HTML file to write; an earlier report is replaced, nothing else.")
    ] = Path("report.html"),
    figures: Annotated[
        Path | None, typer.Option(help="Directory for the figures as SVG and PNG files.")
    ] = None,
    master: Master = MASTER,
) -> None:
    """Write an HTML report about recorded runs, in one self-contained file.

    It shows the configuration of each run, a verdict for every guarantee, delivery times by priority, and
    figures over time. Exit codes are those of [bold]verify[/]; on a violation the report is written, too.
    """
    check_pipeline()
    check_replaceable("--out", out, REPORT)
    check_figures("--figures", figures, FIGURES)
    from priocast.pipeline import study_runs  # imported here: Spark is slow to import
    from priocast.pipeline.figures.figure_files import write_figures

    with show_progress() as progress:
        outcome = study_runs(location, master, out, progress)
        if figures is not None:
            write_figures(outcome, figures)
    console = Console()
    print_verdicts(console, outcome)
    console.print(f"Report: [bold]{escape(str(outcome.report))}[/]", highlight=False, soft_wrap=True)
    if outcome.broken:
        raise typer.Exit(EXIT_VIOLATION)
