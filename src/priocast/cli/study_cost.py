"""`priocast study cost`: the cost paper's experiment, each value beside the paper's."""

from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import (
    check_directory,
    check_figures,
    check_pipeline,
    check_replaceable,
    first_given,
)
from priocast.cli.shared_options import MASTER, AsJson, Master
from priocast.cli.study_output import progress_bar, whole_numbers
from priocast.cli.verdict_output import show_progress
from priocast.core.errors import InvalidOption
from priocast.operations.output_paths import REPORT
from priocast.study.cost import PAPER_ORDERS, CostCell, CostPlan, measure_cell
from priocast.study.cost_files import TABLES, is_finished, row_file, store_cell

if TYPE_CHECKING:
    from priocast.pipeline.tables.cost import CostRow

EXAMPLES = """
[bold]Examples[/]

  priocast study cost --quick

  priocast study cost

  priocast study cost --order sequencer-ub --order reorder --members 4 --rates 40,100

  priocast study cost --at-once 2

  priocast study cost --measured
"""
_DEFAULT = CostPlan()
_QUICK = {"rates": (60, 100), "deliveries": 600, "dropped": 60}
_SET_BY_QUICK = {"rates", "deliveries", "dropped"}
_AT_ONCE_MAX = 64
AtOnce = Annotated[
    int,
    typer.Option(
        help="Groups that run at the same time: 2 measures plain and prioritised side by side. Each is "
        "foreign load for the others."
    ),
]
Measured = Annotated[
    bool, typer.Option("--measured", help="Measure nothing; report the groups that are measured already.")
]


def cost(
    context: typer.Context,
    order: Annotated[
        list[str] | None,
        typer.Option(help="An ordering protocol; may be repeated.", show_default=", ".join(PAPER_ORDERS)),
    ] = None,
    members: Annotated[str, typer.Option(help="Group sizes, separated by commas.")] = "4,8",
    rates: Annotated[
        str, typer.Option(help="Messages per second and member, separated by commas.")
    ] = "10,40,60,80,100",
    deliveries: Annotated[
        int, typer.Option(help="Messages that every member delivers and records.")
    ] = _DEFAULT.deliveries,
    dropped: Annotated[
        int, typer.Option(help="How many of them, the first ones, are a warm-up.")
    ] = _DEFAULT.dropped,
    payload_bytes: Annotated[int, typer.Option(help="Size of a message, in bytes.")] = _DEFAULT.payload_bytes,
    seed: Annotated[int, typer.Option(help="The seed of priorities and phases.")] = _DEFAULT.seed,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two rates and 600 deliveries: about two minutes.")
    ] = False,
    at_once: AtOnce = 1,
    measured: Measured = False,
    out: Annotated[Path, typer.Option(help="Directory for the rows, tables, figures and the report.")] = Path(
        "study-out/cost"
    ),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Measure what priorities cost in delivery time, processor time and memory, as the cost paper did.

    Real processes broadcast at a steady rate, with random priorities, plain and prioritised. All values of
    the paper take more than three hours; an interrupted study goes on where it was. The tables and figures
    are made on Spark, with the paper's values beside ours. Run it on an otherwise idle machine: the foreign
    load of each group is in the report.
    """
    _check_quick(context, quick)
    _check_at_once(at_once)
    chosen = {"rates": whole_numbers("--rates", rates), "deliveries": deliveries, "dropped": dropped}
    plan = CostPlan(
        orders=tuple(dict.fromkeys(order or PAPER_ORDERS)),
        members=whole_numbers("--members", members),
        payload_bytes=payload_bytes,
        seed=seed,
        **(_QUICK if quick else chosen),  # type: ignore[arg-type]  # of these three fields
    )
    _check_output(out, plan)
    console = Console(stderr=as_json)
    finished = [cell for cell in plan.cells() if is_finished(out, plan, cell)]
    if not measured:
        measure_cells(plan, out, finished, console, at_once)
        finished = list(plan.cells())
    if not finished:
        raise InvalidOption(f"--measured: no group of this plan has been measured in {out}")
    rows = _study(plan, finished, out, master, quiet=as_json)
    if as_json:
        print_json({"plan": plan, "cells": rows})
    else:
        _print(rows, out, console)


def _check_quick(context: typer.Context, quick: bool) -> None:
    given = first_given(
        context, except_for={param.name or "" for param in context.command.params} - _SET_BY_QUICK
    )
    if quick and given:
        raise InvalidOption(f"--quick sets the rates and the deliveries: omit {given}, or omit --quick")


def _check_at_once(at_once: int) -> None:
    if not 1 <= at_once <= _AT_ONCE_MAX:
        raise InvalidOption(f"--at-once is {at_once}: from 1 to {_AT_ONCE_MAX} groups")


def measure_cells(
    plan: CostPlan, out: Path, finished: list[CostCell], console: Console, at_once: int = 1
) -> None:
    """Measure the cells that an earlier study with the same plan has not finished, `at_once` at a time.

    If one fails, those that run with it are finished and stored; no other begins. If the study is
    interrupted, all groups end.
    """
    if finished:
        console.print(f"Already measured: {len(finished)} of {sum(1 for _ in plan.cells())} groups.")
    interrupted = Event()
    with progress_bar(console) as progress, ThreadPoolExecutor(at_once) as pool:
        begun = [
            pool.submit(_measure_and_store, plan, out, cell, progress, interrupted)
            for cell in plan.cells()
            if cell not in finished
        ]
        try:
            for each in begun:
                each.result()
        except KeyboardInterrupt:
            interrupted.set()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _measure_and_store(
    plan: CostPlan, out: Path, cell: CostCell, progress: Progress, interrupted: Event
) -> None:
    title = f"{cell.order}, {cell.variant}, {cell.members}, {cell.rate}/s"
    task = progress.add_task(title, total=plan.deliveries)

    def show(delivered: int) -> None:
        if interrupted.is_set():
            raise CancelledError  # which ends the members of this group
        progress.update(task, completed=min(delivered, plan.deliveries))

    store_cell(out, plan, cell, measure_cell(plan, cell, show))


def _check_output(out: Path, plan: CostPlan) -> None:
    check_pipeline()
    from priocast.pipeline.cost_report import figure_names

    check_directory("--out", out)
    check_replaceable("--out", out / "report.html", REPORT)
    check_figures("--out", out, figure_names(plan.members))


def _study(plan: CostPlan, cells: list[CostCell], out: Path, master: str, *, quiet: bool) -> "list[CostRow]":
    from priocast.pipeline.cost_report import study_cost
    from priocast.pipeline.tables.cost import CellFiles

    files = CellFiles(**{table: [row_file(out, table, plan, cell) for cell in cells] for table in TABLES})
    with show_progress(quiet=quiet) as progress:
        return study_cost(files, plan.deliveries, plan.dropped, out, master, progress)


def _print(rows: "list[CostRow]", out: Path, console: Console) -> None:
    from priocast.pipeline.cost_tables import summary_table

    summary = summary_table(rows)
    table = Table(title=summary.title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for index, heading in enumerate(summary.headings):
        table.add_column(heading, justify="left" if index == 2 else "right", no_wrap=True)
    for row in summary.rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"Tables: {out / 'tables.md'}. Report: {out / 'report.html'}")
