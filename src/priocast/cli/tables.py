"""`priocast tables`: writes the tables of recorded runs as Parquet or CSV files."""

from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.markup import escape

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_location, check_pipeline
from priocast.cli.shared_options import MASTER, AsJson, Master
from priocast.cli.verdict_output import show_progress
from priocast.core.errors import InvalidOption
from priocast.trace.remote_directory import without_secrets

if TYPE_CHECKING:
    from priocast.pipeline.table_export import TableFormat

EXAMPLES = """
[bold]Examples[/]

  priocast tables runs/demo --out tables

  priocast tables runs --out tables --format csv && head tables/deliveries/*.csv

  priocast tables s3a://bucket/runs --out s3a://bucket/tables --master spark://host:7077
"""
FORMATS = ("parquet", "csv")


def tables(
    location: Annotated[
        str,
        typer.Argument(
            help="A run directory, a directory of run directories, or the URL of one.", show_default=False
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            help="Directory or URL for the tables; earlier ones are replaced, nothing else.",
            show_default=False,
        ),
    ],
    table_format: Annotated[str, typer.Option("--format", help="parquet or csv.")] = "parquet",
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Write the tables of recorded runs as Parquet or CSV files, for other tools.

    The tables are those of the trace, and [bold]runs[/], [bold]views[/] and [bold]deliveries[/] (one row for
    each message that each process delivered). docs/trace.md describes their columns. In CSV files, lists are
    texts with commas.
    """
    check_pipeline()
    if table_format not in FORMATS:
        raise InvalidOption(f"--format is {table_format!r}: must be {' or '.join(FORMATS)}")
    check_location("--out", out)
    from priocast.pipeline.table_export import export_tables  # imported here: Spark is slow to import

    with show_progress(quiet=as_json) as progress:
        written = export_tables(location, out, cast("TableFormat", table_format), master, progress)
    if as_json:
        print_json({each.name: each.rows for each in written})
        return
    console = Console()
    for each in written:
        console.print(f"{each.name:14} {each.rows:>12,} rows", highlight=False)
    console.print(f"Tables: [bold]{escape(without_secrets(out))}[/]", highlight=False, soft_wrap=True)
