"""`priocast advise`: which class of total order suits a group, what to expect of each, and why."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from priocast.advice.advisor import Advice, advise
from priocast.advice.situation import Situation
from priocast.core.errors import InvalidOption
from priocast.operations.recorded_load import RecordedLoad, measure_run

EXAMPLES = """
[bold]Examples[/]

  priocast advise --members 8 --rate 2000 --rtt-ms 0.2

  priocast advise --members 4 --rate 50000 --senders 1 --priorities none

  priocast advise --members 5 --rate 300 --rtt-ms 40 --causal --json

  priocast advise --members 8 --rate 400 --processors 2

  priocast advise --trace demo-out/traces/prioritised
"""
_DEFAULT = Situation(members=1)


def advice(
    members: Annotated[int | None, typer.Option(help="How many members.", show_default=False)] = None,
    rate: Annotated[float, typer.Option(help="Messages a second, of all members together.")] = _DEFAULT.rate,
    senders: Annotated[
        int | None, typer.Option(help="How many members broadcast.", show_default="all")
    ] = None,
    rtt_ms: Annotated[float, typer.Option(help="The network's round trip time.")] = _DEFAULT.rtt_ms,
    payload_bytes: Annotated[int, typer.Option(help="The size of a message.")] = _DEFAULT.payload_bytes,
    processors: Annotated[
        int | None, typer.Option(help="Processors that all members share.", show_default="one each")
    ] = None,
    priorities: Annotated[
        str,
        typer.Option(help="What is urgent overtakes messages of the group, of the same sender, or none."),
    ] = _DEFAULT.priorities,
    causal: Annotated[bool, typer.Option("--causal", help="Causal order is wanted.")] = False,
    partitionable: Annotated[
        bool, typer.Option("--partitionable", help="Each side of a cut goes on.")
    ] = False,
    safe: Annotated[bool, typer.Option("--safe", help="Deliver only what every member has.")] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Measure a recorded run instead; --rtt-ms is not in it.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Choose a class of total order for a group, from its size, its load and what is asked of the order.

    Predictions follow from hops and frames of each class and from measured times of a frame and a message;
    they are for comparing classes. 'priocast orders' says what the classes are.
    """
    measured = measure_run(trace, rtt_ms) if trace is not None else None
    if measured is not None:
        if members is not None or rate or senders is not None:
            raise InvalidOption("members, rate and senders are measured with --trace: leave them out")
        situation = msgspec.structs.replace(measured.situation, causal=causal, processors=processors)
    elif members is None:
        raise InvalidOption("members is missing: give --members, or --trace with a recorded run")
    else:
        asked: Any = priorities
        situation = Situation(
            members=members,
            rate=rate,
            senders=senders,
            rtt_ms=rtt_ms,
            payload_bytes=payload_bytes,
            processors=processors,
            priorities=asked,
            causal=causal,
            partitionable=partitionable,
            safe=safe,
        )
    found = advise(situation)
    if as_json:
        document = msgspec.to_builtins(found) | {"measured": msgspec.to_builtins(measured)}
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    _show(found, measured, Console())


def _show(found: Advice, measured: RecordedLoad | None, console: Console) -> None:
    if measured is not None:
        console.print(_of_run(found, measured))
    console.print(f"[bold]{found.choice}[/]")
    for reason in found.why:
        console.print(f"  - {escape(reason)}", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("order", no_wrap=True)
    for heading in ("hops", "frames", "delivery", "messages/s\nat most", "busiest\nprocessor"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in found.ranking:
        table.add_row(
            each.order,
            f"{each.hops:.1f}",
            f"{each.frames:g}",
            "saturated" if each.delivery_ms is None else f"{each.delivery_ms:.2f} ms",
            f"{each.capacity:,.0f}",
            f"{min(each.used, 9.99):.0%}",
            style="bold" if each.order == found.choice else "dim" if each.excluded else "",
        )
    console.print(table)
    for reason in dict.fromkeys(each.excluded for each in found.ranking if each.excluded):
        names = ", ".join(each.order for each in found.ranking if each.excluded == reason)
        console.print(f"out of the question: {names} ({escape(reason)})", highlight=False)


def _of_run(found: Advice, measured: RecordedLoad) -> str:
    """What the run was like, and how far the prediction for its order is off."""
    situation, predicted = found.situation, found.of(measured.order)
    said = (
        f"measured: {situation.members} members, {situation.active} of which broadcast {measured.messages:,} "
        f"messages of {situation.payload_bytes} bytes, {situation.rate:,.0f} a second, ordered by "
        f"{measured.order}"
    )
    if measured.delivery_ms is not None:
        said += f"; mean delivery time {measured.delivery_ms:.2f} ms"
    if predicted is not None and predicted.delivery_ms is not None:
        said += f" (predicted: {predicted.delivery_ms:.2f} ms, if applications are never the reason to wait)"
    return said
