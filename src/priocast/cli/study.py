"""`priocast study`: experiments with real processes on this machine, and in the simulator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli import (
    study_aborts,
    study_adaptive,
    study_cost,
    study_faults,
    study_preemption,
    study_reorder,
    study_saturation,
    study_wan,
    study_xamp,
)
from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.shared_options import (
    MASTER,
    AsJson,
    HandlingUs,
    Load,
    Master,
    Members,
    Seconds,
    Starvation,
    StudyDirectory,
)
from priocast.cli.study_output import (
    duration,
    prepare_output,
    print_verdict,
    ratio_of,
    run_planned,
    study_traces,
)
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import parse_starvation
from priocast.protocols import PROTOCOLS, check_order, takes_policy
from priocast.study.classes import ClassRow, Times, Variant, class_row, plan_classes
from priocast.study.workload import Workload

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult

CLASSES_EXAMPLES = """
[bold]Examples[/]

  priocast study classes

  priocast study classes --order sequencer-ub --order token-ring --members 6 --load 5

  priocast study classes --seconds 1 --json
"""
EXAMPLES = """
[bold]Examples[/]

  priocast study classes

  priocast study cost --quick

  priocast study preemption

  priocast study reorder --quick

  priocast study saturation --order sequencer-ub

  priocast study wan --members 5

  priocast study adaptive

  priocast study xamp --quick
"""

study = typer.Typer(
    help="Experiments on this machine: costs and benefits of priorities, orders and qualities of service.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)
study.command(epilog=study_faults.EXAMPLES)(study_faults.faults)
study.command(epilog=study_reorder.EXAMPLES)(study_reorder.reorder)
study.command(epilog=study_preemption.EXAMPLES)(study_preemption.preemption)
study.command(epilog=study_wan.EXAMPLES)(study_wan.wan)
study.command(epilog=study_adaptive.EXAMPLES)(study_adaptive.adaptive)
study.command(epilog=study_xamp.EXAMPLES)(study_xamp.xamp)
study.command(epilog=study_aborts.EXAMPLES)(study_aborts.aborts)
study.command(epilog=study_cost.EXAMPLES)(study_cost.cost)
study.command(epilog=study_saturation.EXAMPLES)(study_saturation.saturation)


@study.command(epilog=CLASSES_EXAMPLES)
def classes(
    order: Annotated[
        list[str] | None,
        typer.Option(help="An ordering protocol. Repeat it for several.", show_default="all"),
    ] = None,
    members: Members = 4,
    load: Load = 2.0,
    seconds: Seconds = 2.0,
    handling_us: HandlingUs = 500,
    starvation: Starvation = "none",
    out: StudyDirectory = Path("study-out/classes"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Overload a group with each ordering protocol, plain and prioritised, and compare the delivery times.

    Every member broadcasts messages of four priorities, faster than the group can handle them, and then at
    half of what it can handle. The table shows the delivery times of the most and the least urgent messages,
    the number of priority inversions, the longest delivery time, how many times faster urgent messages are
    with priorities, and their p99 under overload as a multiple of that at half load.
    """
    policy = parse_starvation(starvation)
    orders = order or [name for name, protocol in PROTOCOLS.items() if takes_policy(protocol, policy)]
    for name in orders:
        check_order(name, primary=True, policy=policy)
    workload = Workload(members=members, load=load, seconds=seconds, handling_us=handling_us)
    planned = plan_classes(orders, workload, OrderingOptions(starvation=policy))
    output = prepare_output(out)
    console = Console(stderr=as_json)
    finished = [run_planned(run, output.traces, console) for runs in planned.values() for run in runs]
    outcome = study_traces(output, master, console)
    times, inversions = _measured(outcome)
    rows = [class_row(name, runs, times, inversions) for name, runs in planned.items()]
    if as_json:
        print_json(rows)
    else:
        console.print(_classes_table(rows, workload))
        print_verdict(outcome, console)
    if outcome.broken or not all(run.same_digest for run in finished):
        raise typer.Exit(EXIT_VIOLATION)


def _measured(outcome: "StudyResult") -> tuple[dict[tuple[str, int], Times], dict[str, int]]:
    times = {
        (each.run, each.priority): Times(each.median_ms, each.p99_ms, each.max_ms)
        for each in outcome.delivery_times
    }
    inversions: dict[str, int] = {}
    for each in outcome.inversions:
        inversions[each.run] = inversions.get(each.run, 0) + each.pairs
    return times, inversions


def _classes_table(rows: list[ClassRow], workload: Workload) -> Table:
    title = f"{workload.members} members at {workload.load:g} x the saturating load"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("class", no_wrap=True)
    headings = ("", "urgent\np50", "\np99", "of half\nload", "backgr.\np99", "inver-\nsions", "longest\nwait")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.order, "plain", *_cells(row.plain))
        table.add_row("", ratio_of(row.gain), *_cells(row.prioritised, f"{row.of_half_load:.1f} x"))
        table.add_row("", "half load", *_cells(row.half_load), end_section=True)
    return table


def _cells(variant: Variant, of_half_load: str = "") -> list[str]:
    return [
        duration(variant.urgent.median_ms),
        duration(variant.urgent.p99_ms),
        of_half_load,
        duration(variant.background.p99_ms),
        f"{variant.inversions:,}",
        duration(variant.longest_ms),
    ]
