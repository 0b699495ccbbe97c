"""A small HTTP/1.1 server on asyncio: h11 parses and frames, this module moves the bytes and sets limits.

It serves one request per connection, and answers with a body or with a stream of chunks that lasts until the
client goes. Head, body, time and the number of connections are limited, so that a client costs little however
it behaves. Every response says that browsers keep it nowhere and let no other site read it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import NamedTuple

import h11

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address

HEAD_BYTES_MAX = 8192
BODY_BYTES_MAX = 10_000
REQUEST_SECONDS = 5.0
CONNECTIONS_MAX = 24
STREAM_STALL_SECONDS = 30.0
_READ_BYTES = 16 * 1024
_METHODS = ("GET", "POST")
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Connection", "close"),
)


class HttpRequest(NamedTuple):
    """A request. `headers` have lower-case names; one that occurs more than once is empty."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: str


class HttpResponse(NamedTuple):
    """A response: a body, or a stream of `chunks`; the connection is closed after it."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    chunks: AsyncGenerator[bytes, None] | None = None


Respond = Callable[[HttpRequest], Awaitable[HttpResponse]]


class RequestRejected(Exception):
    """A request that cannot be served, and the response that says so."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.response = error_response(status, detail)


def error_response(status: HTTPStatus, detail: str) -> HttpResponse:
    """The response to a request that is not served."""
    return HttpResponse(status, f"{status.phrase}: {detail}\n".encode())


class HttpServer:
    """Listens on an address, and answers requests with `respond`."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, address: Address) -> Address:
        """Listen; return the address, with the port that was chosen if it was 0."""
        try:
            self._server = await asyncio.start_server(
                self._on_connection, *address, limit=_READ_BYTES, backlog=CONNECTIONS_MAX
            )
        except OSError as error:
            raise InvalidAddress(
                f"cannot listen on the admin address {address}: {error.strerror or error}; choose a free port"
            ) from error
        return Address(address.host, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            await self._serve(_Connection(reader, writer))
            async with asyncio.timeout(REQUEST_SECONDS):
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _serve(self, connection: "_Connection") -> None:
        async with asyncio.timeout(REQUEST_SECONDS):
            try:
                response = await self._respond(await connection.request())
            except RequestRejected as rejected:
                response = rejected.response
            await connection.begin(response)
            if response.chunks is None:
                await connection.end()
                return
        async with aclosing(response.chunks) as chunks:
            async for chunk in chunks:
                async with asyncio.timeout(STREAM_STALL_SECONDS):
                    await connection.send(chunk)


class _Connection:
    """One connection: a request comes in, its response goes out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)

    async def request(self) -> HttpRequest:
        """Read the request, within the limits."""
        try:
            head = await self._next_event()
            if not isinstance(head, h11.Request):
                raise ConnectionResetError("the connection was closed before a request")
            body = b""
            while isinstance(event := await self._next_event(), h11.Data):
                body += event.data
                if len(body) >= BODY_BYTES_MAX:
                    limit = f"the body must be smaller than {BODY_BYTES_MAX} bytes"
                    raise RequestRejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
        except h11.RemoteProtocolError as error:
            raise RequestRejected(HTTPStatus(error.error_status_hint), str(error)) from error
        method = head.method.decode("latin-1")
        if method not in _METHODS:
            raise RequestRejected(HTTPStatus.METHOD_NOT_ALLOWED, "the methods are GET and POST")
        peer = self._writer.get_extra_info("peername")
        path = head.target.decode("latin-1").partition("?")[0]
        return HttpRequest(method, path, _headers_of(head), body, peer[0] if peer else "")

    async def begin(self, response: HttpResponse) -> None:
        """Send the head of a response, and the body that it has."""
        headers = [("Content-Type", response.content_type), *_HEADERS]
        if response.chunks is None:
            headers.append(("Content-Length", str(len(response.body))))
        head = h11.Response(
            status_code=response.status, reason=response.status.phrase.encode(), headers=headers
        )
        self._write(head)
        if response.body:
            await self.send(response.body)

    async def send(self, chunk: bytes) -> None:
        """Send a part of the body, as soon as the client takes it."""
        self._write(h11.Data(data=chunk))
        await self._writer.drain()

    async def end(self) -> None:
        """The response is complete."""
        self._write(h11.EndOfMessage())
        await self._writer.drain()

    def _write(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._http.send(event) or b"")

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event


def _headers_of(head: h11.Request) -> dict[str, str]:
    """The headers by name. Who reads one that is there twice would have to guess which is meant."""
    found: dict[str, str] = {}
    for name, value in head.headers:
        key = name.decode("latin-1")
        found[key] = "" if key in found else value.decode("latin-1")
    return found
