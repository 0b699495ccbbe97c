"""`priocast study wan`: every order in a group that spans five regions of the world, in the simulator."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.shared_options import AsJson
from priocast.cli.study_output import duration, progress_bar, whole_numbers
from priocast.protocols import PROTOCOLS
from priocast.study.wan import REGIONS, WanPlan, WanRow, measure_wan

EXAMPLES = """
[bold]Examples[/]

  priocast study wan

  priocast study wan --members 5 --order sequencer-ub --order all-ack --seconds 20

  priocast study wan --members 50 --json
"""
_DEFAULT = WanPlan()


def wan(
    order: Annotated[
        list[str] | None,
        typer.Option(help="An ordering protocol. Repeat it for several.", show_default="all"),
    ] = None,
    members: Annotated[str, typer.Option(help="Group sizes, separated by commas.")] = "5,15,50",
    seconds: Annotated[
        float, typer.Option(help="How long a group of five sends; larger ones send for a shorter time.")
    ] = _DEFAULT.seconds,
    as_json: AsJson = False,
) -> None:
    """Measure delivery times between five regions of the world, by the region of the sender.

    The simulator runs every order with published round trips between Washington, Frankfurt, Tokyo, Sydney and
    São Paulo. Members of the first three regions send 20, 10 and 10 messages per second in all, of the other
    two one in a second and one in three seconds. The times are from the broadcast to the delivery at every
    member, in virtual time; the first half of a run does not count. Every guarantee is checked meanwhile.
    """
    sizes = whole_numbers("--members", members)
    plan = WanPlan(members=sizes, orders=tuple(order or PROTOCOLS), seconds=seconds)
    console = Console(stderr=as_json)
    rows = _measure(plan, console)
    if as_json:
        print_json(rows)
        return
    for size in plan.members:
        console.print(_table([row for row in rows if row.members == size], size))


def _measure(plan: WanPlan, console: Console) -> list[WanRow]:
    with progress_bar(console) as progress:
        task = progress.add_task("", total=len(plan.members) * len(plan.orders))
        begun = iter(range(len(plan.members) * len(plan.orders)))

        def on_run(order: str, size: int) -> None:
            progress.update(task, description=f"{order}, {size} members", completed=next(begun))

        rows = measure_wan(plan, on_run)
        progress.update(task, completed=len(plan.members) * len(plan.orders))
    return rows


def _table(rows: Sequence[WanRow], size: int) -> Table:
    title = f"{size} members in five regions: delivery time at all members, by the sender's region"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("order", no_wrap=True)
    for region in REGIONS:
        table.add_column(f"{region}\np50", justify="right", no_wrap=True)
        table.add_column("\np99", justify="right", no_wrap=True)
    found = {(row.order, row.region): row for row in rows}
    for order in dict.fromkeys(row.order for row in rows):
        cells = []
        for region in REGIONS:
            row = found.get((order, region))
            cells += [duration(row.p50_ms), duration(row.p99_ms)] if row else ["-", "-"]
        table.add_row(order, *cells)
    return table
