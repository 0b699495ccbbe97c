"""`priocast report`: one HTML page about recorded runs: verdicts, delivery times, figures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from priocast.cli.checks import check_directory, check_pipeline, check_report
from priocast.cli.output import print_verdicts, show_progress
from priocast.cli.verify import EXIT_BROKEN

EXAMPLES = """
[bold]Examples[/]

  priocast report runs/demo

  priocast report runs --out compared.html --figures figures
"""


def report(
    path: Annotated[
        Path,
        typer.Argument(help="A run directory, or one that holds several to compare.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    figures: Annotated[Path | None, typer.Option(help="Write the figures here, too, as SVG and PNG.")] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs: local\\[*] or a cluster.")] = "local[*]",
) -> None:
    """Write a page about recorded runs that can be opened, printed and sent as one file.

    It holds what was run, the verdict on every promise, delivery times by priority and figures over time.
    Exits like [bold]verify[/]: with 1 if a promise was broken (the page is written, and says where).
    """
    check_pipeline()
    check_report("--out", out)
    check_directory("--figures", figures)
    from priocast.pipeline import study_runs  # here, because Spark is slow to import and --help is not
    from priocast.pipeline.figures.figure_files import write_figures

    with show_progress() as progress:
        outcome = study_runs(path, master, out, progress)
        if figures is not None:
            write_figures(outcome, figures)
    console = Console()
    print_verdicts(console, outcome)
    console.print(f"The report is in [bold]{escape(str(outcome.report))}[/]", highlight=False, soft_wrap=True)
    if outcome.broken:
        raise typer.Exit(EXIT_BROKEN)
