"""`priocast orders` lists the ordering protocols; `priocast change-order` changes that of a running group."""

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_seconds
from priocast.cli.shared_options import AsJson
from priocast.core.protocol_interface import Protocol
from priocast.operations.order_change import request_order_change
from priocast.protocols import LAYERS, PROTOCOLS
from priocast.runtime.admin.order_request import OrderChangeRequest

EXAMPLES = """
[bold]Examples[/]

  priocast orders

  priocast node tickets --order token-ring ...

  priocast node tickets --order time-parts/token-ring ...
"""
CHANGE_EXAMPLES = """
[bold]Examples[/] (on the machine of a member; the address is --admin, or listen under \\[node.admin]):

  priocast change-order 127.0.0.1:9401 tickets causal-history

  priocast change-order 127.0.0.1:9401 tickets sequencer-ub --starvation ageing:20ms
"""


def orders(
    as_json: AsJson = False,
) -> None:
    """List the ordering protocols: their class, and where priorities act."""
    found = [_described(name, protocol) for name, protocol in [*PROTOCOLS.items(), *LAYERS.items()]]
    if as_json:
        print_json(found)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("order", "class", "priorities act", "how"):
        table.add_column(heading, no_wrap=heading == "order")
    for each in found:
        table.add_row(each["order"], each["class"], each["priorities_act"], each["how"])
    Console().print(table)


def change_order(
    address: Annotated[
        str, typer.Argument(help="Admin address of a member of the group, host:port.", show_default=False)
    ],
    group: Annotated[str, typer.Argument(help="Name of the group.", show_default=False)],
    order: Annotated[
        str, typer.Argument(help="The new ordering protocol (see 'priocast orders').", show_default=False)
    ],
    prioritised: Annotated[
        bool | None,
        typer.Option(
            "--prioritised/--plain",
            help="Order by priority, or first in, first out.",
            show_default="unchanged",
        ),
    ] = None,
    starvation: Annotated[
        str | None,
        typer.Option(
            help="How overtaking is bounded: none, ageing:20ms, or flush:500ms (periodic release).",
            show_default="unchanged",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(callback=check_seconds, help="How long to wait for the change, in seconds.")
    ] = 10.0,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token of the node, which only its user can read.",
            show_default="admin-HOST-PORT.token in $PRIOCAST_RUN_DIRECTORY, $XDG_RUNTIME_DIR/priocast, "
            "or priocast-UID among the temporary files",
        ),
    ] = None,
) -> None:
    """Change the ordering protocol of a running group.

    Run it on the machine of the node, as the user that runs it. No message is lost, delivered twice or
    reordered. Exit code 2: the change was rejected, or not complete in time.
    """
    change = OrderChangeRequest(group=group, order=order, prioritised=prioritised, starvation=starvation)
    status, seconds = asyncio.run(request_order_change(address, change, timeout, token_file))
    kind = "prioritised" if status.prioritised else "plain"
    number = status.view.number if status.view else 0
    typer.echo(
        f"{group} is ordered by {status.order}, {kind}, since view {number} (changed in {seconds:.2f} s)"
    )


def _described(name: str, protocol: type[Protocol]) -> dict[str, str]:
    """A row of the table, taken from the first line of the protocol's docstring."""
    of_class, _, how = _first_line(sys.modules[protocol.__module__]).partition(": ")
    is_layer = name in LAYERS
    return {
        "order": f"{name}/..." if is_layer else name,
        "class": "Layer over any of the above" if is_layer else of_class,
        "priorities_act": protocol.PRIORITIES_ACT,
        "how": f"{_first_line(protocol)[:-1]}, each sorted by priority." if is_layer else how,
    }


def _first_line(described: object) -> str:
    return (inspect.getdoc(described) or "").partition("\n")[0]
