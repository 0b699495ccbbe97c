"""`priocast campaign`: runs very many seeds of the simulator on Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_directory, check_location, check_pipeline
from priocast.cli.shared_options import MASTER, AsJson, Master
from priocast.cli.simulate import check_choices, parse_seeds, seed_columns
from priocast.core.errors import InvalidOption
from priocast.protocols import find_protocol
from priocast.simulation.choice import Delivery, Policy
from priocast.simulation.faults import FaultKind
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import write_run

if TYPE_CHECKING:
    from priocast.campaign.campaign import CampaignResult
    from priocast.campaign.plan import Matrix, Plan

EXAMPLES = """
[bold]Examples[/]

  priocast campaign --seeds 0:100000

  priocast campaign --seeds 0:1000 --order token-ring --order sequencer-ub --policy primary --delivery safe

  priocast campaign --seeds 0:10000 --by order --by members --json

  priocast campaign --seeds 0:100 --order token-ring --order sequencer-ub --members 3 --members 7 --load 100
    --load 400 --fault none --fault crash --fault cut

  priocast campaign --seeds 0:100000 --master spark://host:7077 --out hdfs:///campaigns/1
"""
_FAILED_PRINTED = 20

Seeds = Annotated[str, typer.Option(help="One seed (17), or a range without its end (0:100000).")]
Orders = Annotated[
    list[str] | None, typer.Option(help="An ordering protocol; may be repeated.", show_default="random")
]
Policies = Annotated[
    list[str] | None, typer.Option(help="primary or partitionable; may be repeated.", show_default="random")
]
Deliveries = Annotated[
    list[str] | None, typer.Option(help="agreed or safe; may be repeated.", show_default="random")
]
Sizes = Annotated[
    list[int] | None, typer.Option(help="Size of the group; may be repeated.", show_default="random")
]
Loads = Annotated[
    list[int] | None,
    typer.Option(
        help="Percent of the random number and rate of messages; may be repeated.", show_default="100"
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        help=f"The only kind of fault: {', '.join(get_args(FaultKind))}; may be repeated.",
        show_default="random",
    ),
]
Grouping = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to group the summary by: cell, order, prioritised, policy, delivery, members, load "
        "or fault; may be repeated.",
        show_default="cell",
    ),
]
Results = Annotated[
    str, typer.Option(help="Directory or URL of the results; an interrupted campaign is resumed.")
]
Traces = Annotated[
    Path | None, typer.Option(help="Write the runs of the first failed seeds to this directory.")
]


def campaign(
    seeds: Seeds,
    order: Orders = None,
    policy: Policies = None,
    delivery: Deliveries = None,
    members: Sizes = None,
    load: Loads = None,
    fault: Faults = None,
    by: Grouping = None,
    out: Results = "campaign-out",
    traces: Traces = None,
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Run many seeds of the simulator on Spark's executors, and check every guarantee in each.

    Each combination of the options is a cell, and every cell runs all seeds. The results are one table, a
    row per cell and seed. The same seed gives the same verdict and hash as in 'priocast simulate'. Exit
    code 1: a guarantee was violated; the commands that replay the failed seeds are printed.
    """
    check_pipeline()
    check_directory("--traces", traces)
    check_location("--out", out)
    from priocast.campaign.campaign import GROUPINGS, run_campaign  # imported here: Spark is slow to import
    from priocast.campaign.plan import make_plan

    grouping = tuple(by or ("cell",))
    if unknown := [name for name in grouping if name not in GROUPINGS]:
        raise InvalidOption(f"--by is {unknown[0]!r}: choose {', '.join(GROUPINGS)}")
    matrix = _matrix(order or (), policy or (), delivery or (), members or (), load or (), fault or ())
    plan = make_plan(parse_seeds(seeds), matrix)
    console = Console(stderr=as_json)
    with Progress(*seed_columns(), console=console, transient=True) as progress:
        bar = progress.add_task("seeds", total=len(plan))
        result = run_campaign(plan, out, master, grouping, lambda done: progress.update(bar, completed=done))
    if traces is not None:
        _write_traces(result, plan, traces)
    if as_json:
        print_json(result)
    else:
        _print_result(result, grouping, console)
    if result.failed:
        raise typer.Exit(EXIT_VIOLATION)


def _matrix(
    orders: Sequence[str],
    policies: Sequence[str],
    deliveries: Sequence[str],
    members: Sequence[int],
    loads: Sequence[int],
    faults: Sequence[str],
) -> "Matrix":
    from priocast.campaign.plan import Matrix

    for each in orders:
        find_protocol(each)
    check_choices("policy", policies, Policy)
    check_choices("delivery", deliveries, Delivery)
    check_choices("fault", faults, FaultKind)
    return Matrix(
        order=orders,
        policy=cast("Sequence[Policy]", policies),
        delivery=cast("Sequence[Delivery]", deliveries),
        members=members,
        load=loads,
        fault=cast("Sequence[FaultKind]", faults),
    )


def _write_traces(result: "CampaignResult", plan: "Plan", directory: Path) -> None:
    """Run the first failed seeds again, here, and keep their traces: those of all seeds would be too many."""
    for failed in result.failed_seeds[:_FAILED_PRINTED]:
        target = directory / f"{failed.seed}{failed.cell.replace(' --', '-').replace(' ', '-').lstrip('-')}"
        if not target.exists():
            write_run(run_scenario(generate_scenario(failed.seed, plan.cells[failed.cell])), target)


def _print_result(result: "CampaignResult", by: tuple[str, ...], console: Console) -> None:
    console.print(result_table(result, by))
    for failed in result.failed_seeds[:_FAILED_PRINTED]:
        console.print(failed.violations[0], style="red", markup=False, highlight=False)
        console.print(f"replay: {failed.replay}", markup=False, highlight=False)
    if result.failed > _FAILED_PRINTED:
        console.print(f"… and {result.failed - _FAILED_PRINTED:,} more failed seeds")


def result_table(result: "CampaignResult", by: tuple[str, ...]) -> Table:
    """The summary of all seeds; its rows can be told apart on a narrow terminal, too."""
    title = (
        f"{result.seeds:,} seeds, {result.seeds_run:,} of them run now in {result.run_seconds:.1f} s, after "
        f"{result.start_seconds:.1f} s to start Spark"
    )
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1)
    )
    for name in by:
        table.add_column(name, overflow="fold")
    for name in ("seeds", "failed", "deliveries", "views", "virtual\ntime", "slowest to\nquiescence"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result.rows:
        table.add_row(
            *(row.values[name] for name in by),
            f"{row.seeds:,}",
            f"{row.failed:,}",
            f"{row.deliveries:,}",
            f"{row.views:,}",
            f"{row.virtual_seconds:,.0f} s",
            f"{row.settling_seconds_max:.2f} s",
            style="red" if row.failed else "",
        )
    return table
