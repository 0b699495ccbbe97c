"""Requests to admin endpoints, over HTTP/1.1: h11 parses and frames, asyncio moves the bytes."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from priocast.core.errors import ForeignFrame, InvalidInput
from priocast.network.address import Address

_RESPONSE_BYTES_MAX = 16 * 1024 * 1024
_READ_BYTES = 64 * 1024
_REJECTED = (403, 415, 422)


async def request(
    address: Address,
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    expected: int = 200,
) -> bytes:
    """Send one request to a node; return the body of the response, if it has the expected status code."""
    async with responding(address, method, path, body, headers) as (status, chunks):
        found = b""
        async for chunk in chunks:
            found += chunk
            if len(found) > _RESPONSE_BYTES_MAX:
                raise ForeignFrame(f"not a Priocast node: its reply exceeds {_RESPONSE_BYTES_MAX:,} bytes")
    if status in _REJECTED:
        raise InvalidInput(found.decode(errors="replace").strip())
    if status != expected:
        raise ForeignFrame(f"not a Priocast node: it replied with status {status}")
    return found


@asynccontextmanager
async def responding(
    address: Address, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
    """Send one request; yields the status code of the response, and its body as it comes."""
    fields = {"Host": str(address), "Connection": "close", **(headers or {})}
    if body:
        fields["Content-Length"] = str(len(body))
    reader, writer = await asyncio.open_connection(*address)
    exchange = _Exchange(reader, writer)
    try:
        exchange.send(method, path, fields, body)
        yield await exchange.status(), exchange.chunks()
    finally:
        writer.transport.abort()


class _Exchange:
    """A request and its response, on a connection of their own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11  # takes 15 ms to import

        self._h11 = h11
        self._http = h11.Connection(h11.CLIENT)
        self._reader = reader
        self._writer = writer

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request."""
        head = self._h11.Request(method=method, target=path, headers=list(headers.items()))
        for event in (head, self._h11.Data(data=body), self._h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")

    async def status(self) -> int:
        """The status code of the response, when its head has come."""
        if not (first := await self._reader.read(_READ_BYTES)):
            raise ForeignFrame("not a Priocast node: it closed the connection")
        self._http.receive_data(first)
        try:
            head = await self._next_event()
        except self._h11.RemoteProtocolError as error:
            raise ForeignFrame(
                f"not an admin address: the reply is not HTTP ({error}); use the address of --admin"
            ) from error
        if not isinstance(head, self._h11.Response):
            raise ForeignFrame("not a Priocast node: its reply is not final")
        return head.status_code

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body of the response, as it comes."""
        try:
            while isinstance(event := await self._next_event(), self._h11.Data):
                yield event.data
        except self._h11.RemoteProtocolError as error:
            raise ConnectionResetError("the node has ended, or closed the connection") from error

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is self._h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event
