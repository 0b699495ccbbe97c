"""`priocast study reorder`: the time until an urgent message is at the head of the queues of a group."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_figures, check_pipeline, first_given
from priocast.cli.shared_options import AsJson
from priocast.cli.study_output import progress_bar, whole_numbers
from priocast.core.errors import InvalidOption
from priocast.study.reorder import BASE, InsertionPlan, InsertionRow, Round, measure_round, rows_of
from priocast.study.reorder_worker import ROUND_TRIP

EXAMPLES = """
[bold]Examples[/]

  priocast study reorder

  priocast study reorder --members 2,6 --queued 100 --rounds 9

  priocast study reorder --quick --json
"""
_QUICK_ROUNDS = 2
_QUICK_MESSAGES = 40
FIGURE = "placing"
_ALLOWED_WITH_QUICK = {"members", "payload_bytes", "queued", "quick", "out", "as_json"}
_DEFAULT = InsertionPlan()


def reorder(
    context: typer.Context,
    members: Annotated[str, typer.Option(help="Group sizes, separated by commas.")] = "2,3,4,6,8",
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = _DEFAULT.rounds,
    messages: Annotated[
        int, typer.Option(help="Urgent messages per round and protocol.")
    ] = _DEFAULT.messages,
    payload_bytes: Annotated[
        int, typer.Option(help="Size of an urgent message, in bytes.")
    ] = _DEFAULT.payload_bytes,
    queued: Annotated[int, typer.Option(help="Routine messages queued at every replica.")] = _DEFAULT.queued,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{_QUICK_ROUNDS} rounds of {_QUICK_MESSAGES} messages.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("study-out/reorder"),
    as_json: AsJson = False,
) -> None:
    """Measure the time until an urgent message has its position, for groups of several sizes.

    Routine messages are queued at every replica; one replica broadcasts urgent messages, one at a time. The
    time ends when the message is at the head of the sender's queue, and of all queues. It is compared with
    agreement-skeen without priorities, where the message goes to the end of the queue, and with a raw round
    trip between two of the processes. The protocols take turns in the same processes. Run it on an otherwise
    idle machine.
    """
    if quick and (given := first_given(context, except_for=_ALLOWED_WITH_QUICK)):
        raise InvalidOption(f"--quick sets the number of rounds and messages: omit {given}, or omit --quick")
    plan = InsertionPlan(
        members=whole_numbers("--members", members),
        rounds=_QUICK_ROUNDS if quick else rounds,
        messages=_QUICK_MESSAGES if quick else messages,
        payload_bytes=payload_bytes,
        queued=queued,
    )
    check_pipeline()
    check_figures("--out", out, (FIGURE,))
    out.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=as_json)
    rows = rows_of(_measure(plan, console))
    figures = _draw(rows, out)
    if as_json:
        document = {"plan": plan, "rows": rows, "figures": [str(path) for path in figures]}
        print_json(document)
    else:
        console.print(_table(rows, plan))
        console.print(f"Figure: {figures[0]}")


def _measure(plan: InsertionPlan, console: Console) -> dict[int, list[Round]]:
    """All rounds by group size; each round measures every size in turn."""
    found: dict[int, list[Round]] = {size: [] for size in plan.members}
    with progress_bar(console) as progress:
        task = progress.add_task("", total=plan.total)
        done = 0
        for number in range(plan.rounds):
            for size in plan.members:
                progress.update(task, description=f"round {number + 1}, {size} replicas")

                def show(placed: int, before: int = done) -> None:
                    progress.update(task, completed=before + placed)

                found[size].append(measure_round(size, plan, show))
                done += plan.messages
                progress.update(task, completed=done)
    return found


def _draw(rows: list[InsertionRow], out: Path) -> list[Path]:
    from priocast.pipeline.figures.figure_files import write_figure
    from priocast.pipeline.figures.ordering_time import OrderingTime, draw_ordering_times

    times = [OrderingTime(row.way, row.members, row.at_sender_ms, row.way == ROUND_TRIP) for row in rows]
    return write_figure(FIGURE, draw_ordering_times(times), out)


def _table(rows: list[InsertionRow], plan: InsertionPlan) -> Table:
    title = (
        f"an urgent message of {plan.payload_bytes:,} bytes, queues of {plan.queued}: "
        f"ms until it has its position"
    )
    caption = (
        f"medians of {plan.messages} messages, then of {plan.rounds} rounds; difference: from {BASE.name}"
    )
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("protocol", no_wrap=True)
    for heading in ("at the\nsender", "x raw\nround trip", "difference\nin ms", "\nin %", "at all\nreplicas"):
        table.add_column(heading, justify="right", no_wrap=True)
    for size in plan.members:
        for row in (each for each in rows if each.members == size):
            first = row.way == ROUND_TRIP
            table.add_row(str(size) if first else "", row.way, *_cells(row), style="dim" if first else "")
        table.add_section()
    return table


def _cells(row: InsertionRow) -> list[str]:
    over = row.overhead_ms is not None and row.overhead is not None and row.way != BASE.name
    return [
        f"{row.at_sender_ms:.3f}",
        f"{row.round_trips:.1f}",
        f"{row.overhead_ms:+.3f}" if over else "",
        f"{row.overhead:+.0%}" if over else "",
        f"{row.everywhere_ms:.3f}" if row.way != ROUND_TRIP else "",
    ]
