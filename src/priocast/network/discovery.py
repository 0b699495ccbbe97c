"""Finding peers by a name: all addresses that it has now, looked up again and again.

In a cluster, processes start one by one at addresses that nobody knows in advance, and restart at others. A
name that stands for all of them, such as a headless service of Kubernetes, is enough: each process dials
whatever the name resolves to, at one port. What the name does not resolve to any more is not dialled any
more; open connections are left alone.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address, parse_address

PREFIX = "dns:"
_PAUSE_SECONDS_FIRST = 0.25
_PAUSE_SECONDS_MAX = 5.0

Resolve = Callable[[str, int], Awaitable[Iterable[Address]]]


class DnsName(NamedTuple):
    """A name for the addresses of all peers, and the port at which they listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{PREFIX}{Address(*self)}"


def is_dns_name(text: str) -> bool:
    """Whether a text stands for all addresses of a name, and not for one address."""
    return text.startswith(PREFIX)


def parse_dns_name(text: str) -> DnsName:
    """Parse `dns:name:port`."""
    try:
        return DnsName(*parse_address(text.removeprefix(PREFIX)))
    except InvalidAddress:
        raise InvalidAddress(
            f"{text!r} is not a name for peers: write dns:name:port, for example dns:members.local:7401"
        ) from None


async def resolve_all(host: str, port: int) -> list[Address]:
    """All addresses of a name, of both families; none if there is no such name now."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [Address(str(address[0]), port) for *_, address in found]


class Discovery:
    """Looks up a name until it is cancelled: often at first and after each change, then every few seconds."""

    def __init__(self, name: DnsName, resolve: Resolve = resolve_all) -> None:
        self.name = name
        self._resolve = resolve

    async def run(self, on_change: Callable[[list[Address]], None]) -> None:
        """Call `on_change` with all addresses, in order, whenever they are others than before."""
        known: list[Address] | None = None
        pause = _PAUSE_SECONDS_FIRST
        while True:
            found = sorted(set(await self._resolve(*self.name)))
            if found != known:
                known, pause = found, _PAUSE_SECONDS_FIRST
                on_change(found)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)
