"""`priocast feed`: a member that keeps the ordered messages for readers, such as Spark jobs."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.shared_options import (
    FixedOrder,
    TlsAuthority,
    TlsCertificate,
    TlsKey,
    TlsRevoked,
    tls_of,
)
from priocast.feed.feed import KEEP_BYTES, Feed, open_feed
from priocast.operations.logs import configure_logging
from priocast.operations.node_plan import ORDER
from priocast.runtime import event_loop
from priocast.runtime.group import Group
from priocast.runtime.node import join

EXAMPLES = """
[bold]Examples[/] (a group of two members, each with a feed):

  priocast feed tickets --member a --listen 127.0.0.1:7401 --peer 127.0.0.1:7402
  --directory feeds/a --address 127.0.0.1:9501 --other 127.0.0.1:9502

  priocast feed tickets --member b --listen 127.0.0.1:7402 --peer 127.0.0.1:7401
  --directory feeds/b --address 127.0.0.1:9502 --other 127.0.0.1:9501

In Spark: spark.readStream.format("priocast")
.options(group="tickets", feeds="127.0.0.1:9501,127.0.0.1:9502").load()
"""
_MEBIBYTE = 1024 * 1024


def feed(
    group: Annotated[str, typer.Argument(help="Name of the group.", show_default=False)],
    member: Annotated[str, typer.Option(help="Name of this member, unique in the group.")],
    listen: Annotated[str, typer.Option(help="Address of this member, host:port.")],
    directory: Annotated[Path, typer.Option(help="Directory for the messages, used by this feed only.")],
    peer: Annotated[
        list[str] | None, typer.Option(help="Address of another member. Repeat it for each.")
    ] = None,
    address: Annotated[str, typer.Option(help="Address for readers, host:port.")] = "127.0.0.1:0",
    other: Annotated[
        list[str] | None,
        typer.Option(help="Address of another feed, to fetch missed messages from. Repeat it for each."),
    ] = None,
    keep_mb: Annotated[
        int, typer.Option(min=1, help="Approximate size to keep, in MiB; the oldest messages are trimmed.")
    ] = KEEP_BYTES // _MEBIBYTE,
    order: FixedOrder = ORDER,
    founders: Annotated[
        int | None,
        typer.Option(help="How many members form the first view together.", show_default="1 + --peer"),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    tls_revoked: TlsRevoked = None,
) -> None:
    """Keep the ordered messages of a group on disk, and serve them to readers that are not members.

    The group must have safe delivery and no application state. Runs until SIGINT or SIGTERM, then leaves the
    group. A program that is itself a member opens a feed with priocast.open_feed.
    """
    configure_logging("text", "info")
    tls = tls_of(tls_certificate, tls_key, tls_authority, tls_revoked)
    others, keep_bytes = tuple(other or ()), keep_mb * _MEBIBYTE
    joining = join(
        group,
        member=member,
        listen=listen,
        peers=peer or [],
        order=order,
        delivery="safe",
        founders=founders,
        tls=tls,
    )
    opening = open_feed(
        group,
        member=member,
        directory=directory,
        address=address,
        others=others,
        tls=tls,
        keep_bytes=keep_bytes,
    )

    async def run() -> None:
        async with opening as kept, joining as joined:
            typer.echo(f"{member} feeds readers of group {group} at {kept.address}")
            await _until_stopped(joined, kept)

    event_loop.run(run())


async def _until_stopped(joined: Group, kept: Feed) -> None:
    """Feed what the group delivers, until a signal says to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    feeding = asyncio.create_task(_take_all(joined, kept))
    stopping = asyncio.create_task(stopped.wait())
    done, _ = await asyncio.wait([feeding, stopping], return_when=asyncio.FIRST_COMPLETED)
    feeding.cancel()
    if feeding in done:
        await feeding


async def _take_all(joined: Group, kept: Feed) -> None:
    async for event in joined:
        kept.take(event)
