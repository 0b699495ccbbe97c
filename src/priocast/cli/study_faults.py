"""`priocast study faults`: a fault-injection campaign on the qualities of service, in the simulator."""

from collections.abc import Iterable, Sequence
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
from priocast.cli.verdict_output import show_progress
from priocast.core.quality import parse_quality
from priocast.simulation.service_generator import EVERY_QUALITY
from priocast.study.faults import InjectedFault, InjectionPlan, inject

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
    _inject_all(cells, output.traces, console)
    from priocast.pipeline.coverage_report import study_faults  # imported here: Spark is slow to import
    from priocast.pipeline.tables.fault_coverage import with_totals

    with show_progress(console=console) as stages:
        rows = study_faults(output.traces, master, output.report, stages)
    if as_json:
        print_json(rows)
    else:
        console.print(_table(with_totals(rows)))
        console.print(f"Report: {output.report}")
    if any(row.assumed and row.tolerated < row.affected for row in rows):
        raise typer.Exit(EXIT_VIOLATION)


def _inject_all(cells: Sequence[tuple[InjectedFault, str, int]], traces: Path, console: Console) -> None:
    """Show a progress bar, or print a line for each kind of fault where none can be shown."""
    with progress_bar(console) as progress:
        task = progress.add_task("runs", total=len(cells))
        last = None
        for index, (fault, quality, seed) in enumerate(cells):
            if fault != last and not console.is_terminal:
                console.print(f"{index} of {len(cells)} runs; next: {fault.name}")
            last = fault
            progress.update(task, description=f"{fault.name}, {quality}")
            inject(fault, quality, seed, traces)
            progress.advance(task)


def _table(rows: "Iterable[FaultCoverage]") -> Table:
    table = Table(title="Fault injection", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("fault", no_wrap=True)
    table.add_column("quality", no_wrap=True)
    for heading in ("injected", "affected", "noticed", "tolerated"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("lost", no_wrap=True)
    fault = ""
    for row in rows:
        counts = map(str, (row.injected, row.affected, row.noticed, row.tolerated))
        style = "red" if row.assumed and row.tolerated < row.affected else ""
        lost = ", ".join(each.rpartition("(")[2].rstrip(")") for each in row.lost)
        table.add_row("" if row.fault == fault else row.fault, row.quality, *counts, lost, style=style)
        fault = row.fault
    return table
