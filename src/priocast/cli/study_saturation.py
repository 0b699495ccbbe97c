"""`priocast study saturation`: rates and delivery times of every order against the offered load."""

import os
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import (
    check_directory,
    check_figures,
    check_pipeline,
    check_replaceable,
    first_given,
)
from priocast.cli.shared_options import MASTER, AsJson, Jobs, Master, StudyDirectory
from priocast.cli.study_output import progress_bar, whole_numbers
from priocast.cli.verdict_output import show_progress
from priocast.core.errors import InvalidOption
from priocast.operations.output_paths import REPORT
from priocast.protocols import PROTOCOLS
from priocast.study.saturation import (
    LAN,
    PLACES,
    PRIORITISED,
    SHAPES,
    STEADY,
    VARIANTS,
    SaturationCell,
    SaturationPlan,
)
from priocast.study.saturation_campaign import campaign as full_campaign
from priocast.study.saturation_campaign import estimated_seconds, quick_campaign
from priocast.study.saturation_cells import (
    FinishedCell,
    PlannedCell,
    measure_cells,
    planned_cells,
    stored_cells,
)
from priocast.study.saturation_simulated import assumptions

if TYPE_CHECKING:
    from priocast.pipeline.tables.saturation import SaturationRow

EXAMPLES = """
[bold]Examples[/]

  priocast study saturation --order sequencer-ub --order reorder

  priocast study saturation --quick

  priocast study saturation --campaign

  priocast study saturation --campaign --order sequencer-ub --place lan --place wan

  priocast study saturation --place lan --place wan --order token-ring --members 4,64 --loads 1000,16000

  priocast study saturation --place processes --members 2,4,8,16 --payload-bytes 64,1024 --loads 1000,8000

  priocast study saturation --shape slow-member --loads 500,1000,2000 --variant plain --variant prioritised

  priocast study saturation --measured
"""
_SET_BY_CAMPAIGN = {
    "shape",
    "variant",
    "members",
    "payload_bytes",
    "loads",
    "messages",
    "messages_max",
}
#: More tables than these would scroll past.
_TABLES_MAX = 8
_DEFAULT = SaturationPlan(orders=())


_MEMBERS, _PAYLOAD_BYTES, _LOADS = (
    ",".join(map(str, values)) for values in (_DEFAULT.members, _DEFAULT.payload_bytes, _DEFAULT.loads)
)
Orders = Annotated[
    list[str] | None,
    typer.Option("--order", help="An ordering protocol; may be repeated.", show_default="all"),
]
Places = Annotated[
    list[str] | None,
    typer.Option("--place", help=f"{', '.join(PLACES)}; may be repeated.", show_default=LAN),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help=f"{', '.join(SHAPES)}; may be repeated.", show_default=STEADY),
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", help=f"{', '.join(VARIANTS)}; may be repeated.", show_default=PRIORITISED),
]
Members = Annotated[str, typer.Option(help="Group sizes, separated by commas.")]
PayloadBytes = Annotated[str, typer.Option(help="Sizes of a message in bytes, separated by commas.")]
Loads = Annotated[str, typer.Option(help="Messages per second of the whole group, separated by commas.")]
Messages = Annotated[
    int, typer.Option(help="Messages that a group gets; more at loads at which they last too short.")
]
MessagesMax = Annotated[int, typer.Option(help="So many at most, unless each member would have too few.")]
Seed = Annotated[int, typer.Option(help="The seed of times and priorities.")]
Campaign = Annotated[
    bool,
    typer.Option(
        "--campaign",
        help="All places, sizes from 2 to 256, messages from 64 bytes to 64 KiB, a slow member, bursts: "
        "about two hours on two idle processors. --order and --place choose a part of it.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="A little of everything, in a couple of minutes.")]
Measured = Annotated[
    bool, typer.Option("--measured", help="Measure nothing; report the groups that are measured already.")
]


def saturation(
    context: typer.Context,
    order: Orders = None,
    place: Places = None,
    shape: Shapes = None,
    variant: Variants = None,
    members: Members = _MEMBERS,
    payload_bytes: PayloadBytes = _PAYLOAD_BYTES,
    loads: Loads = _LOADS,
    messages: Messages = _DEFAULT.messages,
    messages_max: MessagesMax = _DEFAULT.messages_max,
    seed: Seed = _DEFAULT.seed,
    campaign: Campaign = False,
    quick: Quick = False,
    measured: Measured = False,
    jobs: Jobs = 0,
    out: StudyDirectory = Path("study-out/saturation"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Offer increasing loads to groups, and measure what they deliver and how long it takes.

    On a LAN or between five regions (wan) in the simulator, with a model of processors and network
    interfaces, or on processes of this machine. All combinations of the options are measured; an interrupted
    study goes on where it was. Several groups are simulated at a time, those of processes run alone. The
    tables and figures are made on Spark, of all groups that are in --out, also those of earlier commands.
    """
    _check_preset(context, campaign=campaign, quick=quick)
    if campaign or quick:
        preset = full_campaign if campaign else quick_campaign
        plans = preset(seed, order, place)
    else:
        plan = SaturationPlan(
            orders=tuple(dict.fromkeys(order or PROTOCOLS)),
            places=tuple(dict.fromkeys(place or (LAN,))),
            shapes=tuple(dict.fromkeys(shape or (STEADY,))),
            variants=tuple(dict.fromkeys(variant or (PRIORITISED,))),
            members=whole_numbers("--members", members),
            payload_bytes=whole_numbers("--payload-bytes", payload_bytes),
            loads=whole_numbers("--loads", loads),
            messages=messages,
            messages_max=messages_max,
            seed=seed,
        )
        plans = (plan,)
    planned = planned_cells(plans, out / "cells")
    _check_output(planned, out)
    console = Console(stderr=as_json)
    failures = [] if measured else _measure(planned, jobs or os.cpu_count() or 1, console)
    rows = _study(out, master, quiet=as_json)
    if as_json:
        failed = [{"cell": each.cell, "failure": each.failure} for each in failures]
        print_json({"plans": plans, "cells": rows, "failed": failed})
    else:
        _print(rows, {each.cell for each in planned}, out, console)
    if failures:
        raise typer.Exit(1)


def _check_preset(context: typer.Context, *, campaign: bool, quick: bool) -> None:
    if campaign and quick:
        raise InvalidOption("--campaign and --quick are different campaigns: choose one")
    others = {param.name or "" for param in context.command.params} - _SET_BY_CAMPAIGN
    given = first_given(context, except_for=others)
    if given and (campaign or quick):
        chosen = "--campaign" if campaign else "--quick"
        raise InvalidOption(f"{chosen} sets {given}: omit {given}, or omit {chosen}")


def _check_output(planned: Sequence[PlannedCell], out: Path) -> None:
    check_pipeline()
    check_directory("--out", out)
    check_replaceable("--out", out / "report.html", REPORT)
    from priocast.pipeline.saturation_report import GroupKey, figure_names

    cells = {*(each.cell for each in planned), *stored_cells(out / "cells").values()}
    keys = {
        GroupKey(cell.place, cell.shape, cell.members, cell.payload_bytes, who)
        for cell in cells
        for who in cell.parts
    }
    check_figures("--out", out, figure_names(sorted(keys)))


def _measure(planned: Sequence[PlannedCell], jobs: int, console: Console) -> list[FinishedCell]:
    """Measure the cells that no earlier study has measured in this way; return those that failed."""
    missing = [each for each in planned if not each.is_finished]
    minutes = max(1, round(estimated_seconds(missing, jobs) / 60))
    console.print(
        f"{len(planned):,} groups; measured already: {len(planned) - len(missing):,}. "
        f"The others take about {minutes} minute{'s' * (minutes > 1)} on an idle machine."
    )
    failures = []
    with progress_bar(console) as progress, closing(measure_cells(missing, jobs)) as cells:
        whole = progress.add_task("groups", total=len(planned), completed=len(planned) - len(missing))
        for finished in cells:
            cell = finished.cell
            title = f"{cell.order}, {cell.members}, {cell.load}/s, {cell.place}"
            progress.update(whole, description=title, advance=1)
            if finished.failure:
                failures.append(finished)
                console.print(f"Failed: {title}, {cell.shape}: {finished.failure}", markup=False)
    return failures


def _study(out: Path, master: str, *, quiet: bool) -> "list[SaturationRow]":
    from priocast.pipeline.saturation_report import study_saturation

    files = list(stored_cells(out / "cells"))
    if not files:
        raise InvalidOption(f"no group has been measured in {out}")
    with show_progress(quiet=quiet) as progress:
        return study_saturation(files, out, master, progress, assumptions())


def _print(
    rows: "Sequence[SaturationRow]", planned: Collection[SaturationCell], out: Path, console: Console
) -> None:
    """Print the tables of the groups that were planned, unless they are many, and where all are."""
    from priocast.pipeline.saturation_report import (
        SHORT_HEADINGS,
        SHORT_NOTE,
        by_group,
        short_cells_of,
        title_of,
    )

    groups = by_group([row for row in rows if saturation_cell(row) in planned])
    for key, of_group in list(groups.items())[:_TABLES_MAX]:
        table = Table(title=title_of(key), box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
        for index, heading in enumerate(SHORT_HEADINGS):
            table.add_column(heading, justify="left" if index < 2 else "right", no_wrap=True)
        for row in of_group:
            table.add_row(*short_cells_of(row))
        console.print(table)
    more = f"{len(groups) - _TABLES_MAX} more tables are there. " if len(groups) > _TABLES_MAX else ""
    console.print(SHORT_NOTE)
    console.print(f"Tables: {out / 'tables.md'}. {more}Report: {out / 'report.html'}")


def saturation_cell(row: "SaturationRow") -> SaturationCell:
    """The cell that a row is about."""
    return SaturationCell(
        row.place, row.shape, row.members, row.payload_bytes, row.order, row.variant, row.load
    )
