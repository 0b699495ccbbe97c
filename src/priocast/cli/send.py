"""`priocast send`: one ordered message from a process that is not a member."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.exit_codes import EXIT_NOT_ACCEPTED
from priocast.cli.line_sender import problem_of
from priocast.cli.option_checks import check_seconds, first_given
from priocast.cli.shared_options import SendQuality, TlsAuthority, TlsCertificate, TlsKey, TlsRevoked, tls_of
from priocast.core.errors import InvalidOption
from priocast.core.priority import parse_priority
from priocast.core.quality import parse_quality
from priocast.operations.logs import configure_logging
from priocast.operations.visible_text import visible
from priocast.runtime import event_loop
from priocast.runtime.client import open_client
from priocast.runtime.parameters import NodeParameters
from priocast.services.outputs import SendReceipt

EXAMPLES = """
[bold]Examples[/]

  priocast send tickets --peer 127.0.0.1:7401 --peer 127.0.0.1:7402 "two seats please"

  priocast send tickets --peer 127.0.0.1:7401 --priority urgent "stop selling"

  priocast send tickets --peer 127.0.0.1:7401 --quality reliable "the shop is open"

With TLS, the client needs its own certificate (priocast keys client shop --group tickets):

  priocast send tickets --peer 10.0.0.1:7401 --name shop --tls-certificate keys/shop.crt
  --tls-key keys/shop.key --tls-authority keys/authority.crt "two seats please"
"""


_ALL_BUT_SAFE = (
    *("group", "text", "peer", "priority", "to", "name", "listen", "key_file", "quality", "timeout"),
    *("tls_certificate", "tls_key", "tls_authority", "tls_revoked"),
)


def send(
    context: typer.Context,
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
        str | None, typer.Option(help="Address for replies, host:port.", show_default="any free port")
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    tls_revoked: TlsRevoked = None,
    key_file: Annotated[
        Path | None, typer.Option(help="UDP: the group's key. Selects UDP instead of TCP.")
    ] = None,
    quality: SendQuality = None,
    timeout: Annotated[
        float, typer.Option(callback=check_seconds, help="How long to wait for the reply, in seconds.")
    ] = 30.0,
) -> None:
    """Ask a member to broadcast a message, exactly once, and print its position in the order.

    If the member does not reply, the next --peer is asked. With --quality, one member sends it, at most once.
    Exit code 1: too few recipients have it; 2: no member replied in time, or it was rejected.
    """
    wanted = parse_quality(quality) if quality is not None else None
    if wanted is not None and first_given(context, except_for=_ALL_BUT_SAFE) is not None:
        raise InvalidOption("--safe and --agreed are for the total order: omit them with --quality")
    tls = tls_of(tls_certificate, tls_key, tls_authority, tls_revoked)
    level = parse_priority(priority)
    connection: NodeParameters = {"peers": peer, "listen": listen, "tls": tls}
    if key_file is not None:
        connection |= {"transport": "udp", "keys": {group: key_file}}
    configure_logging("text", "error")

    async def run() -> int | SendReceipt | None:
        client_name = name or f"client-{secrets.token_hex(4)}"
        payload, recipients = text.encode(), to or None
        async with open_client(group, client=client_name, **connection) as client:
            if wanted is not None:
                return await client.send_with(wanted, payload, level, to=recipients, timeout_seconds=timeout)
            return await client.send(payload, level, safe=safe, to=recipients, timeout_seconds=timeout)

    _report(event_loop.run(run()))


def _report(result: int | SendReceipt | None) -> None:
    """Print what became of the message."""
    if isinstance(result, SendReceipt):
        answered = ", ".join(result.answered) or "nobody"
        typer.echo(f"{result.message} was answered by {answered}, rounds: {result.rounds}")
        if not result.accepted:
            typer.echo(f"error: not accepted: {visible(problem_of(result))}", err=True)
            raise typer.Exit(EXIT_NOT_ACCEPTED)
    elif result is None:
        typer.echo("the message is ordered; its position is not known any more")
    else:
        typer.echo(f"the message has position {result} in the order")
