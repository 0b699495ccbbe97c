"""What the network alone costs: a message to several processes over bare TCP, and one response from each.

This is what the qualities of service are compared with. The one-way time is the paper's Γ, the time until all
responses are there its Tr(d).
"""

import asyncio
import socket
import time
from collections.abc import Sequence
from typing import cast

from priocast.network.address import parse_address

_HEAD_BYTES = 8
_RESPONSE = b"+"


class RawRecipient:
    """Answers every message, and notes when it has arrived (monotonic clock, ns), by its number."""

    def __init__(self) -> None:
        self.arrived: dict[int, int] = {}

    async def listen(self, address: str) -> asyncio.Server:
        """Accept messages at this address."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Incoming(self.arrived), *parse_address(address))


class _Incoming(asyncio.Protocol):
    """A connection that messages come from; each begins with its number and its length."""

    def __init__(self, arrived: dict[int, int]) -> None:
        self._arrived = arrived
        self._transport: asyncio.Transport | None = None
        self._pending = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = _without_delay(transport)

    def data_received(self, data: bytes) -> None:
        pending = self._pending
        pending += data
        while len(pending) >= _HEAD_BYTES:
            length = int.from_bytes(pending[4:_HEAD_BYTES])
            if len(pending) < length:
                return
            self._arrived[int.from_bytes(pending[:4])] = time.monotonic_ns()
            del pending[:length]
            assert self._transport is not None
            self._transport.write(_RESPONSE)


class _Outgoing(asyncio.Protocol):
    """A connection to a recipient."""

    def __init__(self, sender: "RawSender") -> None:
        self._sender = sender
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = _without_delay(transport)

    def data_received(self, data: bytes) -> None:
        self._sender.on_responses(len(data))


class RawSender:
    """Sends a message to all recipients, and waits until each of them has answered."""

    def __init__(self) -> None:
        self._connections: list[_Outgoing] = []
        self._missing = 0
        self._answered: asyncio.Future[None] | None = None

    async def connect(self, addresses: Sequence[str]) -> None:
        """Connect to the recipients."""
        loop = asyncio.get_running_loop()
        for address in addresses:
            _, connection = await loop.create_connection(lambda: _Outgoing(self), *parse_address(address))
            self._connections.append(connection)

    async def send(self, number: int, size: int) -> None:
        """Send a message of this size, and wait for all responses."""
        message = number.to_bytes(4) + size.to_bytes(4) + bytes(max(0, size - _HEAD_BYTES))
        self._missing = len(self._connections)
        self._answered = asyncio.get_running_loop().create_future()
        for connection in self._connections:
            assert connection.transport is not None
            connection.transport.write(message)
        await self._answered

    def on_responses(self, count: int) -> None:
        """Recipients have answered."""
        self._missing -= count
        if self._missing == 0 and self._answered is not None:
            self._answered.set_result(None)

    def close(self) -> None:
        """End the connections."""
        for connection in self._connections:
            if connection.transport is not None:
                connection.transport.close()


def _without_delay(transport: asyncio.BaseTransport) -> asyncio.Transport:
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return cast("asyncio.Transport", transport)
