"""`priocast cluster up | status | down`: a Spark cluster on this machine, for trying out."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from priocast.cli.option_checks import check_directory, check_pipeline

EXAMPLES = """
[bold]Examples[/]

  priocast cluster up --workers 2

  priocast campaign --seeds 0:1000 --master "$(priocast cluster status --url)"

  priocast cluster down
"""
_DIRECTORY = Path("cluster-out")

cluster = typer.Typer(
    help="Start and stop a Spark cluster on this machine, to try things out.",
    no_args_is_help=True,
    epilog=EXAMPLES,
)

Directory = Annotated[Path, typer.Option(help="Directory of the cluster's logs and scratch files.")]


@cluster.command(epilog=EXAMPLES)
def up(
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of workers.")] = 2,
    cores: Annotated[int, typer.Option(min=1, help="Cores per worker.")] = 1,
    memory_mb: Annotated[int, typer.Option(min=512, help="Memory per worker, in megabytes.")] = 2048,
    directory: Directory = _DIRECTORY,
) -> None:
    """Start a master and workers on 127.0.0.1. They run until 'priocast cluster down'."""
    check_pipeline()
    check_directory("--directory", directory)
    from priocast.pipeline.cluster import start_cluster  # imported here: Spark is slow to import

    with Console(stderr=True).status("starting the cluster"):
        started = start_cluster(directory.absolute(), workers, cores, memory_mb)
    typer.echo(started.master)


@cluster.command(epilog=EXAMPLES)
def status(
    url: Annotated[bool, typer.Option("--url", help="Print only the URL of the master.")] = False,
    directory: Directory = _DIRECTORY,
) -> None:
    """Show the processes of the cluster. Exit code 1: one is not running, or there is none."""
    check_pipeline()
    from priocast.pipeline.cluster import find_cluster

    found = find_cluster(directory.absolute())
    if found is None:
        typer.echo(f"no cluster was started with {directory}", err=True)
        raise typer.Exit(1)
    if url:
        typer.echo(found.master)
    else:
        table = Table("process", "id", "state", title=found.master, title_justify="left")
        for process in found.processes:
            state = "running" if process.is_running else "[red]ended[/]"
            table.add_row(process.role, str(process.pid), state)
        Console().print(table)
    if len(found.running) < len(found.processes):
        raise typer.Exit(1)


@cluster.command(epilog=EXAMPLES)
def down(directory: Directory = _DIRECTORY) -> None:
    """Stop the cluster and remove its logs and scratch files."""
    check_pipeline()
    from priocast.pipeline.cluster import end_cluster

    typer.echo(f"{end_cluster(directory.absolute())} processes ended")
