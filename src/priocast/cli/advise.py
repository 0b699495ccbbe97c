"""`priocast advise`: recommends an ordering protocol for a group, with predictions for all of them."""

# ruff: noqa: ARG001 - the arguments that make a situation are read from the context, all at once

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
from priocast.cli.json_output import print_json
from priocast.cli.option_checks import first_given
from priocast.cli.shared_options import AsJson
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
_ALLOWED_WITH_TRACE = {"trace", "rtt_ms", "causal", "processors", "as_json"}


def advice(
    context: typer.Context,
    members: Annotated[int | None, typer.Option(help="Number of members.", show_default=False)] = None,
    rate: Annotated[
        float, typer.Option(help="Messages per second, of all members together.")
    ] = _DEFAULT.rate,
    senders: Annotated[
        int | None, typer.Option(help="Number of members that broadcast.", show_default="all")
    ] = None,
    rtt_ms: Annotated[
        float, typer.Option(help="Round-trip time of the network, in milliseconds.")
    ] = _DEFAULT.rtt_ms,
    payload_bytes: Annotated[int, typer.Option(help="Size of a message, in bytes.")] = _DEFAULT.payload_bytes,
    processors: Annotated[
        int | None, typer.Option(help="Processors that all members share.", show_default="one each")
    ] = None,
    priorities: Annotated[
        str,
        typer.Option(help="Urgent messages overtake those of all members (group), of their sender, or none."),
    ] = _DEFAULT.priorities,
    causal: Annotated[bool, typer.Option("--causal", help="Require causal order.")] = False,
    partitionable: Annotated[
        bool, typer.Option("--partitionable", help="Every side of a network partition continues.")
    ] = False,
    safe: Annotated[
        bool, typer.Option("--safe", help="Deliver only what every member has received.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(help="Take the load from a recorded run. A trace does not contain --rtt-ms."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend an ordering protocol for a group, from its size, its load and the guarantees required.

    The predictions are computed from the hops and frames of each protocol and from measured processor times;
    use them to compare protocols. 'priocast orders' describes the protocols.
    """
    measured = None
    if trace is not None:
        given = first_given(context, except_for=_ALLOWED_WITH_TRACE)
        if given is not None:
            raise InvalidOption(
                f"{given} cannot be combined with --trace, which contains it: omit one of them"
            )
        measured = measure_run(trace, rtt_ms)
        situation = msgspec.structs.replace(measured.situation, causal=causal, processors=processors)
    else:
        situation = _situation_of(context.params)
    found = advise(situation)
    if as_json:
        print_json(msgspec.structs.asdict(found) | {"measured": measured})
        return
    _show(found, measured, Console())


def _situation_of(given: dict[str, Any]) -> Situation:
    """The situation that the options describe; it checks its values itself."""
    if given["members"] is None:
        raise InvalidOption("members is missing: give --members, or --trace with a recorded run")
    return Situation(**{name: given[name] for name in Situation.__struct_fields__})


def _show(found: Advice, measured: RecordedLoad | None, console: Console) -> None:
    if measured is not None:
        console.print(_measurement(found, measured))
    console.print(f"[bold]{found.choice}[/]")
    for reason in found.why:
        console.print(f"  - {escape(reason)}", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("order", no_wrap=True)
    for heading in ("hops", "frames", "delivery", "messages/s\nmaximum", "busiest\nprocessor"):
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
        console.print(f"excluded: {names} ({escape(reason)})", highlight=False)


def _measurement(found: Advice, measured: RecordedLoad) -> str:
    """The load of the run, and its delivery time beside the prediction for its protocol."""
    situation, predicted = found.situation, found.of(measured.order)
    text = (
        f"measured: {situation.members} members, {situation.active} of which broadcast {measured.messages:,} "
        f"messages of {situation.payload_bytes} bytes, {situation.rate:,.0f} per second, ordered by "
        f"{measured.order}"
    )
    if measured.delivery_ms is not None:
        text += f"; mean delivery time {measured.delivery_ms:.2f} ms"
    if predicted is not None and predicted.delivery_ms is not None:
        text += f" (predicted: {predicted.delivery_ms:.2f} ms, if applications consume without delay)"
    return text
