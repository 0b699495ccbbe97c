"""`priocast study saturation`: rates and delivery times of every order against the offered load."""

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_directory, check_figures, check_pipeline, check_replaceable
from priocast.cli.shared_options import MASTER, AsJson, Jobs, Master, StudyDirectory
from priocast.cli.study_output import progress_bar, whole_numbers
from priocast.cli.verdict_output import show_progress
from priocast.operations.output_paths import REPORT
from priocast.protocols import PROTOCOLS
from priocast.study.saturation import LAN, PLACES, PRIORITISED, SHAPES, STEADY, VARIANTS, SaturationPlan
from priocast.study.saturation_cells import cell_file, measure_cells

if TYPE_CHECKING:
    from priocast.pipeline.tables.saturation import SaturationRow

EXAMPLES = """
[bold]Examples[/]

  priocast study saturation --order sequencer-ub --order reorder

  priocast study saturation --place lan --place wan --members 4,16,64,256 --loads 1000,16000

  priocast study saturation --place processes --members 2,4,8,16 --payload-bytes 64,1024,65536

  priocast study saturation --shape slow-member --shape bursts --variant plain --variant prioritised
"""
_DEFAULT = SaturationPlan(orders=())


def _list(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def saturation(
    order: Annotated[
        list[str] | None,
        typer.Option(help="An ordering protocol; may be repeated.", show_default="all"),
    ] = None,
    place: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(PLACES)}; may be repeated.", show_default=LAN)
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(SHAPES)}; may be repeated.", show_default=STEADY)
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(VARIANTS)}; may be repeated.", show_default=PRIORITISED),
    ] = None,
    members: Annotated[str, typer.Option(help="Group sizes, separated by commas.")] = _list(_DEFAULT.members),
    payload_bytes: Annotated[
        str, typer.Option(help="Sizes of a message in bytes, separated by commas.")
    ] = _list(_DEFAULT.payload_bytes),
    loads: Annotated[
        str, typer.Option(help="Messages per second of the whole group, separated by commas.")
    ] = _list(_DEFAULT.loads),
    messages: Annotated[
        int, typer.Option(help="Messages that a group gets; more at loads at which they last too short.")
    ] = _DEFAULT.messages,
    seed: Annotated[int, typer.Option(help="The seed of times and priorities.")] = _DEFAULT.seed,
    jobs: Jobs = 0,
    out: StudyDirectory = Path("study-out/saturation"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Offer increasing loads to groups, and measure what they deliver and how long it takes.

    On a LAN or between five regions (wan) in the simulator, with a model of processors and network
    interfaces, or on processes of this machine. All combinations of the options are measured; an interrupted
    study goes on where it was. Several groups are simulated at a time, those of processes run alone. The
    tables and figures are made on Spark.
    """
    plan = SaturationPlan(
        orders=tuple(dict.fromkeys(order or PROTOCOLS)),
        places=tuple(dict.fromkeys(place or (LAN,))),
        shapes=tuple(dict.fromkeys(shape or (STEADY,))),
        variants=tuple(dict.fromkeys(variant or (PRIORITISED,))),
        members=whole_numbers("--members", members),
        payload_bytes=whole_numbers("--payload-bytes", payload_bytes),
        loads=whole_numbers("--loads", loads),
        messages=messages,
        seed=seed,
    )
    _check_output(plan, out)
    console = Console(stderr=as_json)
    files = _measure(plan, out / "cells", jobs or os.cpu_count() or 1, console)
    from priocast.pipeline.saturation_report import study_saturation

    with show_progress(quiet=as_json) as progress:
        rows = study_saturation(files, out, master, progress)
    if as_json:
        print_json({"plan": plan, "cells": rows})
    else:
        _print(rows, out, console)


def _check_output(plan: SaturationPlan, out: Path) -> None:
    check_pipeline()
    check_directory("--out", out)
    check_replaceable("--out", out / "report.html", REPORT)
    from priocast.pipeline.saturation_report import figure_name

    keys = [
        (place, shape, size, payload)
        for place in plan.places
        for shape in plan.shapes
        for size in plan.members
        for payload in plan.payload_bytes
    ]
    check_figures("--out", out, [figure_name(key) for key in keys])


def _measure(plan: SaturationPlan, directory: Path, jobs: int, console: Console) -> list[Path]:
    """Measure the cells that an earlier study with the same plan has not finished."""
    files = {cell: cell_file(directory, plan, cell) for cell in plan.cells()}
    missing = {cell: path for cell, path in files.items() if not path.is_file()}
    with progress_bar(console) as progress, closing(measure_cells(plan, missing, jobs)) as cells:
        whole = progress.add_task("groups", total=len(files), completed=len(files) - len(missing))
        for cell in cells:
            title = f"{cell.order}, {cell.members}, {cell.load}/s, {cell.place}"
            progress.update(whole, description=title, advance=1)
    return list(files.values())


def _print(rows: "list[SaturationRow]", out: Path, console: Console) -> None:
    from priocast.pipeline.saturation_report import HEADINGS, by_group, cells_of, title_of

    for key, of_group in by_group(rows).items():
        table = Table(title=title_of(key), box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
        for index, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if index < 2 else "right", no_wrap=True)
        for row in of_group:
            table.add_row(*cells_of(row))
        console.print(table)
    console.print(f"Tables: {out / 'tables.md'}. Report: {out / 'report.html'}")
