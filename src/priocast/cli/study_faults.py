"""`priocast study faults`: a fault-injection campaign on the qualities of service, in the simulator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.shared_options import MASTER, AsJson, Master, StudyDirectory
from priocast.cli.study_output import prepare_output, progress_bar
from priocast.core.quality import parse_quality
from priocast.simulation.service_generator import EVERY_QUALITY
from priocast.study.faults import InjectionPlan, inject

if TYPE_CHECKING:
    from priocast.pipeline.tables.fault_coverage import FaultCoverage

EXAMPLES = """
[bold]Examples[/]

  priocast study faults

  priocast study faults --seeds 50 --quality atomic --quality reliable
"""


def faults(
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each kind of fault and quality.")] = 5,
    quality: Annotated[
        list[str] | None,
        typer.Option(help="A quality of service. Repeat it for several.", show_default="all"),
    ] = None,
    out: StudyDirectory = Path("study-out/faults"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Inject faults into simulated groups that send with qualities of service, and measure the coverage.

    Each kind of fault is injected alone, those that a quality assumes and those that break a property of the
    network. The table shows how many faults were injected, in how many runs they were noticed, and in how
    many every promise held. Exit code 1: a promise was broken by a fault that the quality assumes.
    """
    chosen = tuple(str(parse_quality(each)) for each in quality or EVERY_QUALITY)
    cells = InjectionPlan(seeds=seeds, qualities=chosen).cells()
    output = prepare_output(out)
    console = Console(stderr=as_json)
    with progress_bar(console) as progress:
        task = progress.add_task("runs", total=len(cells))
        for fault, each, seed in cells:
            progress.update(task, description=f"{fault.name}, {each}")
            inject(fault, each, seed, output.traces)
            progress.advance(task)
    from priocast.pipeline.coverage_report import study_faults  # imported here: Spark is slow to import

    with console.status("Spark: starting") as status:
        rows = study_faults(
            output.traces, master, output.report, lambda line: status.update(f"Spark: {line}")
        )
    if as_json:
        print_json(rows)
    else:
        console.print(_table(rows))
        console.print(f"Report: {output.report}")
    if any(row.assumed and row.tolerated < row.affected for row in rows):
        raise typer.Exit(EXIT_VIOLATION)


def _table(rows: "list[FaultCoverage]") -> Table:
    table = Table(title="Fault injection", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("fault", no_wrap=True)
    table.add_column("quality", no_wrap=True)
    for heading in ("injected", "affected", "noticed", "tolerated", "coverage"):
        table.add_column(heading, justify="right")
    table.add_column("lost")
    for index, row in enumerate(rows):
        fault = "" if index and rows[index - 1].fault == row.fault else row.fault
        counts = map(str, (row.injected, row.affected, row.noticed, row.tolerated))
        style = "red" if row.assumed and row.tolerated < row.affected else ""
        lost = ", ".join(each.rpartition("(")[2].rstrip(")") for each in row.lost)
        table.add_row(fault, row.quality, *counts, f"{row.coverage:.0%}", lost, style=style)
    return table
