"""`priocast send`: one ordered message from a process that is not a member."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.option_checks import check_seconds
from priocast.core.errors import InvalidOption
from priocast.core.priority import parse_priority
from priocast.network.security import TlsSecurity
from priocast.operations.logs import configure_logging
from priocast.runtime import event_loop
from priocast.runtime.client import open_client
from priocast.runtime.parameters import NodeParameters

EXAMPLES = """
[bold]Examples[/]

  priocast send tickets --peer 127.0.0.1:7401 --peer 127.0.0.1:7402 "two seats please"

  priocast send tickets --peer 127.0.0.1:7401 --priority urgent "stop selling"

With TLS, the client has a certificate of its own (priocast keys member shop --group tickets):

  priocast send tickets --peer 10.0.0.1:7401 --name shop --tls-certificate keys/shop.crt
  --tls-key keys/shop.key --tls-authority keys/authority.crt "two seats please"
"""

TlsFile = Annotated[
    Path | None, typer.Option(help="For TLS: the client's certificate, its key, the authority's.")
]


def send(
    group: Annotated[str, typer.Argument(help="The name of the group.", show_default=False)],
    text: Annotated[str, typer.Argument(help="The message.", show_default=False)],
    peer: Annotated[list[str], typer.Option(help="The address of a member; several if one may be down.")],
    priority: Annotated[str, typer.Option(help="0 to 255, or a name such as urgent.")] = "routine",
    safe: Annotated[bool, typer.Option("--safe", help="Deliver only when every member has it.")] = False,
    to: Annotated[
        list[str] | None, typer.Option(help="A member that is to deliver it; all, if none.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name of this client.", show_default="drawn")] = None,
    listen: Annotated[
        str | None, typer.Option(help="Where members answer.", show_default="any free port")
    ] = None,
    tls_certificate: TlsFile = None,
    tls_key: TlsFile = None,
    tls_authority: TlsFile = None,
    key_file: Annotated[Path | None, typer.Option(help="For UDP: the key of the group.")] = None,
    timeout: Annotated[
        float, typer.Option(callback=check_seconds, help="How long to wait for the answer.")
    ] = 30.0,
) -> None:
    """Have a message broadcast by a member, exactly once, and print its position in the order.

    If the member that was asked does not answer, the next one is. Exits with 2 if none answers in time.
    """
    tls = [path for path in (tls_certificate, tls_key, tls_authority) if path is not None]
    if len(tls) not in (0, 3):
        raise InvalidOption("TLS needs all of --tls-certificate, --tls-key and --tls-authority")
    level = parse_priority(priority)
    way: NodeParameters = {"peers": peer, "listen": listen, "tls": TlsSecurity(*tls) if tls else None}
    if key_file is not None:
        from priocast.network.keys import read_group_key  # here, because cryptography is slow to import

        way |= {"transport": "udp", "keys": {group: read_group_key(key_file)}}

    configure_logging("text", "error")

    async def run() -> int | None:
        client_name = name or f"client-{secrets.token_hex(4)}"
        async with open_client(group, client=client_name, **way) as client:
            return await client.send(text.encode(), level, safe=safe, to=to or None, timeout_seconds=timeout)

    position = event_loop.run(run())
    said = f"position {position} in the order" if position is not None else "a position that was not told"
    typer.echo(f"the message has {said}")
