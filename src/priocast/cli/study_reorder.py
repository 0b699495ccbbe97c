"""`priocast study reorder`: how long it takes to place an urgent message in the queues of a group."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.checks import check_directory, check_pipeline
from priocast.cli.running import progress_bar
from priocast.core.errors import InvalidOption
from priocast.study.reorder import BASE, Placing, PlacingPlan, Round, measure_round, rows_of
from priocast.study.reorder_worker import ROUND_TRIP

EXAMPLES = """
[bold]Examples[/]

  priocast study reorder

  priocast study reorder --members 2,6 --queued 100 --rounds 9

  priocast study reorder --quick --json
"""
_QUICK_ROUNDS = 2
_QUICK_MESSAGES = 40
_DEFAULT = PlacingPlan()


def reorder(
    members: Annotated[str, typer.Option(help="How many replicas: sizes, with commas.")] = "2,3,4,6,8",
    rounds: Annotated[int, typer.Option(help="How often to repeat everything.")] = _DEFAULT.rounds,
    messages: Annotated[int, typer.Option(help="Urgent messages in each round and way.")] = _DEFAULT.messages,
    payload_bytes: Annotated[int, typer.Option(help="Their size.")] = _DEFAULT.payload_bytes,
    queued: Annotated[
        int, typer.Option(help="Routine messages that wait at every replica.")
    ] = _DEFAULT.queued,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{_QUICK_ROUNDS} rounds of {_QUICK_MESSAGES} messages.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("study-out/reorder"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Measure how long it takes to place an urgent message in the queues of groups of several sizes.

    Routine messages wait at every replica; one broadcasts urgent ones, one at a time. The time runs until the
    urgent message is at the head of the sender's queue, and of all queues. It is compared with
    agreement-skeen without priorities, where the message goes to the end of the queue, and with the raw round
    trip between two of the processes. All ways are measured by turns in the same processes; nothing else
    should run on the machine.
    """
    plan = PlacingPlan(
        members=_sizes(members),
        rounds=_QUICK_ROUNDS if quick else rounds,
        messages=_QUICK_MESSAGES if quick else messages,
        payload_bytes=payload_bytes,
        queued=queued,
    )
    check_pipeline()
    check_directory("--out", out)
    out.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=as_json)
    rows = rows_of(_measure(plan, console))
    figures = _draw(rows, out)
    if as_json:
        document = {"plan": plan, "rows": rows, "figures": [str(path) for path in figures]}
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        console.print(_table(rows, plan))
        console.print(f"The figure: {figures[0]}")


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(word) for word in text.split(",")}))
    except ValueError:
        raise InvalidOption(f"members is {text!r}: write sizes with commas, such as 2,4,6") from None


def _measure(plan: PlacingPlan, console: Console) -> dict[int, list[Round]]:
    """All rounds of all sizes, one size after the other within a round."""
    found: dict[int, list[Round]] = {size: [] for size in plan.members}
    with progress_bar(console) as progress:
        task = progress.add_task("", total=plan.total)
        done = 0
        for number in range(plan.rounds):
            for size in plan.members:
                progress.update(task, description=f"round {number + 1}, {size} replicas")

                def show(placed: int, before: int = done) -> None:
                    progress.update(task, completed=before + placed)

                found[size].append(asyncio.run(measure_round(size, plan, show)))
                done += plan.messages
                progress.update(task, completed=done)
    return found


def _draw(rows: list[Placing], out: Path) -> list[Path]:
    from priocast.pipeline.figures.figure_files import write_figure
    from priocast.pipeline.figures.ordering_time import OrderingTime, draw_ordering_times

    times = [OrderingTime(row.way, row.members, row.at_sender_ms, row.way == ROUND_TRIP) for row in rows]
    return write_figure("placing", draw_ordering_times(times), out)


def _table(rows: list[Placing], plan: PlacingPlan) -> Table:
    title = (
        f"an urgent message of {plan.payload_bytes:,} bytes, queues of {plan.queued}: "
        f"ms until it has its place"
    )
    caption = f"medians of {plan.messages} messages, then of {plan.rounds} rounds; over: over {BASE.name}"
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("way", no_wrap=True)
    for heading in ("at the\nsender", "x raw\nround trip", "over\nby ms", "\nby", "at all\nreplicas"):
        table.add_column(heading, justify="right", no_wrap=True)
    for size in plan.members:
        for row in (each for each in rows if each.members == size):
            first = row.way == ROUND_TRIP
            table.add_row(str(size) if first else "", row.way, *_cells(row), style="dim" if first else "")
        table.add_section()
    return table


def _cells(row: Placing) -> list[str]:
    over = row.overhead_ms is not None and row.overhead is not None and row.way != BASE.name
    return [
        f"{row.at_sender_ms:.3f}",
        f"{row.round_trips:.1f}",
        f"{row.overhead_ms:+.3f}" if over else "",
        f"{row.overhead:+.0%}" if over else "",
        f"{row.everywhere_ms:.3f}" if row.way != ROUND_TRIP else "",
    ]
