"""`priocast orders`: the protocols there are; `priocast change-order`: another one for a group that runs."""

import asyncio
import inspect
import json
import sys
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.option_checks import check_seconds
from priocast.core.protocol import Protocol
from priocast.operations.order_change import OrderChangeRequest, ask_for_order
from priocast.protocols import LAYERS, PROTOCOLS

EXAMPLES = """
[bold]Examples[/]

  priocast orders

  priocast node tickets --order token-ring ...

  priocast node tickets --order time-parts/token-ring ...
"""
CHANGE_EXAMPLES = """
[bold]Examples[/] (the address is that given by --admin, or by listen under \\[node.admin], on this machine):

  priocast change-order 127.0.0.1:9401 tickets causal-history

  priocast change-order 127.0.0.1:9401 tickets sequencer-ub --starvation ageing:20ms
"""


def orders(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """List the protocols that can order a group: what class they are, and where priorities act."""
    found = [_described(name, protocol) for name, protocol in [*PROTOCOLS.items(), *LAYERS.items()]]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("order", "class", "priorities act", "how"):
        table.add_column(heading, no_wrap=heading == "order")
    for each in found:
        table.add_row(each["order"], each["class"], each["priorities_act"], each["how"])
    Console().print(table)


def change_order(
    address: Annotated[str, typer.Argument(help="Where a member of the group answers: host:port.")],
    group: Annotated[str, typer.Argument(help="The name of the group.")],
    order: Annotated[str, typer.Argument(help="The protocol that shall order from now on.")],
    prioritised: Annotated[
        bool | None, typer.Option("--prioritised/--plain", help="With or without priorities.")
    ] = None,
    starvation: Annotated[
        str | None, typer.Option(help="none, ageing:20ms or flush:500ms.", show_default="as it is")
    ] = None,
    timeout: Annotated[float, typer.Option(callback=check_seconds, help="How long to wait for it.")] = 10.0,
) -> None:
    """Let another protocol order a group that runs; nothing is lost, delivered twice or reordered."""
    change = OrderChangeRequest(group=group, order=order, prioritised=prioritised, starvation=starvation)
    status, seconds = asyncio.run(ask_for_order(address, change, timeout))
    kind = "prioritised" if status.prioritised else "plain"
    number = status.view.number if status.view else 0
    typer.echo(f"{group} is ordered by {status.order}, {kind}, from view {number} on ({seconds:.2f} s)")


def _described(name: str, protocol: type[Protocol]) -> dict[str, str]:
    """What the first line of its docstring says of a protocol."""
    of_class, _, how = _first_line(sys.modules[protocol.__module__]).partition(": ")
    is_layer = name in LAYERS
    return {
        "order": f"{name}/..." if is_layer else name,
        "class": "Layer over any of these" if is_layer else of_class,
        "priorities_act": protocol.PRIORITIES_ACT,
        "how": f"{_first_line(protocol)[:-1]}, each put in order by priority." if is_layer else how,
    }


def _first_line(described: object) -> str:
    return (inspect.getdoc(described) or "").partition("\n")[0]
