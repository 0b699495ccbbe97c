"""`priocast send`: one ordered message from a process that is not a member."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.option_checks import check_seconds
from priocast.cli.shared_options import TlsAuthority, TlsCertificate, TlsKey, TlsRevoked, tls_of
from priocast.core.priority import parse_priority
from priocast.operations.logs import configure_logging
from priocast.runtime import event_loop
from priocast.runtime.client import open_client
from priocast.runtime.parameters import NodeParameters

EXAMPLES = """
[bold]Examples[/]

  priocast send tickets --peer 127.0.0.1:7401 --peer 127.0.0.1:7402 "two seats please"

  priocast send tickets --peer 127.0.0.1:7401 --priority urgent "stop selling"

With TLS, the client needs its own certificate (priocast keys client shop --group tickets):

  priocast send tickets --peer 10.0.0.1:7401 --name shop --tls-certificate keys/shop.crt
  --tls-key keys/shop.key --tls-authority keys/authority.crt "two seats please"
"""


def send(
    group: Annotated[str, typer.Argument(help="Name of the group.", show_default=False)],
    text: Annotated[str, typer.Argument(help="The message.", show_default=False)],
    peer: Annotated[
        list[str],
        typer.Option(help="Address of a member, host:port. Repeat it: the next one is tried if one is down."),
    ],
    priority: Annotated[str, typer.Option(help="0 to 255, or a name such as urgent.")] = "routine",
    safe: Annotated[
        bool,
        typer.Option(
            "--safe/--agreed",
            help="Deliver when every member has received it, or as soon as it has a position.",
        ),
    ] = True,
    to: Annotated[
        list[str] | None,
        typer.Option(help="Member that delivers it. Repeat it for several.", show_default="all members"),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of this client.", show_default="random")] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Address for replies, host:port.", show_default="any free port"),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    tls_revoked: TlsRevoked = None,
    key_file: Annotated[
        Path | None, typer.Option(help="UDP: the group's key. Selects UDP instead of TCP.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(callback=check_seconds, help="How long to wait for the reply, in seconds.")
    ] = 30.0,
) -> None:
    """Ask a member to broadcast a message, exactly once, and print its position in the order.

    If the member does not reply, the next --peer is asked. Exit code 2: no member replied in time.
    """
    tls = tls_of(tls_certificate, tls_key, tls_authority, tls_revoked)
    level = parse_priority(priority)
    connection: NodeParameters = {"peers": peer, "listen": listen, "tls": tls}
    if key_file is not None:
        connection |= {"transport": "udp", "keys": {group: key_file}}
    configure_logging("text", "error")

    async def run() -> int | None:
        client_name = name or f"client-{secrets.token_hex(4)}"
        async with open_client(group, client=client_name, **connection) as client:
            return await client.send(text.encode(), level, safe=safe, to=to or None, timeout_seconds=timeout)

    position = event_loop.run(run())
    if position is None:
        typer.echo("the message is ordered; its position is not known any more")
    else:
        typer.echo(f"the message has position {position} in the order")
