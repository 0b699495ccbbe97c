"""The admin endpoint of a node over HTTP: `GET /metrics`, `GET /status`, `PUT /order` to change the order.

It runs on the event loop of the node, on asyncio streams: a status is read between two turns of the members,
so it needs no lock and is always consistent. A server in a thread would have to switch to the event loop for
each status, and three fixed paths do not need a full HTTP implementation. This one is small and strict: one
request per connection, limits on the size of head and body, on the time and on the number of connections.

It reveals names, addresses and load, and does not authenticate. Therefore it listens on a loopback address
unless the user allows otherwise, and then accepts only a loopback `Host`, so that a web page in a browser on
this machine cannot read it through a host name of its own (DNS rebinding). Changes are accepted from this
machine only, even if remote reads are allowed.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from types import TracebackType
from typing import NamedTuple

import msgspec

from priocast.core.errors import InvalidAddress, PriocastError
from priocast.network.address import Address, parse_address
from priocast.operations.node_status import node_status
from priocast.operations.order_change import change_order
from priocast.runtime.node import Node

HEAD_BYTES_MAX = 4096
REQUEST_SECONDS = 5.0
CONNECTIONS_MAX = 16
_LENGTH_DIGITS_MAX = 4


class HttpResponse(NamedTuple):
    """A response; the connection is closed after it."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"

    def encoded(self) -> bytes:
        """The bytes to send."""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + self.body


class HttpRequest(NamedTuple):
    """The parsed head of a request."""

    method: str
    path: str
    host: str
    body_bytes: int


class Admin:
    """Serves the admin endpoint of one node, as an asynchronous context manager."""

    def __init__(self, node: Node, listen: str, *, allow_remote: bool = False) -> None:
        self._node = node
        self._address = check_admin_address(listen, allow_remote=allow_remote)
        self._allow_remote = allow_remote
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Admin":
        try:
            self._server = await asyncio.start_server(
                self._on_connection, *self._address, limit=HEAD_BYTES_MAX, backlog=CONNECTIONS_MAX
            )
        except OSError as error:
            raise InvalidAddress(
                f"cannot listen on the admin address {self._address}: {error.strerror or error}; "
                "choose a free port"
            ) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
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
            async with asyncio.timeout(REQUEST_SECONDS):
                peer = writer.get_extra_info("peername")
                response = await self._respond(reader, peer[0] if peer else "")
                writer.write(response.encoded())
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _respond(self, reader: asyncio.StreamReader, peer: str) -> HttpResponse:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request = _read_head(head)
            if isinstance(request, HttpResponse):
                return request
            body = await reader.readexactly(request.body_bytes)
        except asyncio.LimitOverrunError:
            return _error(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the request head must not exceed {HEAD_BYTES_MAX} bytes",
            )
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the connection was closed in the middle of a request") from error
        if not self._allow_remote and not _is_loopback(request.host):
            return _error(HTTPStatus.MISDIRECTED_REQUEST, "the Host must be 127.0.0.1, [::1] or localhost")
        if request.method == "GET":
            return self._page(request.path)
        if not _is_loopback(peer):
            return _error(HTTPStatus.FORBIDDEN, "changes are accepted from the node's own machine only")
        return self._change(request.path, body)

    def _change(self, path: str, body: bytes) -> HttpResponse:
        if path != "/order":
            return _error(HTTPStatus.NOT_FOUND, "the only path for PUT is /order")
        try:
            accepted = change_order(self._node, body)
        except PriocastError as error:
            return HttpResponse(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error}\n".encode())
        return HttpResponse(HTTPStatus.ACCEPTED, f"{accepted}\n".encode())

    def _page(self, path: str) -> HttpResponse:
        match path:
            case "/metrics":
                from priocast.operations.metrics import CONTENT_TYPE, exposition  # takes 30 ms to import

                return HttpResponse(HTTPStatus.OK, exposition(self._node), CONTENT_TYPE)
            case "/status":
                body = msgspec.json.encode(node_status(self._node))
                return HttpResponse(HTTPStatus.OK, body, "application/json")
            case _:
                return _error(HTTPStatus.NOT_FOUND, "the paths for GET are /metrics and /status")


def check_admin_address(text: str, *, allow_remote: bool) -> Address:
    """Parse the address to listen on; other than loopback it must be allowed explicitly."""
    address = parse_address(text)
    if not allow_remote and not _is_loopback(address.host):
        raise InvalidAddress(
            f"{text} can be reached from other machines, and the admin endpoint does not authenticate: "
            "listen on 127.0.0.1, or set allow_remote = true under [node.admin] if the network is trusted"
        )
    return address


def _read_head(head: bytes) -> HttpRequest | HttpResponse:
    """Parse the head of a request; return an error response if it is invalid."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _error(HTTPStatus.BAD_REQUEST, "expected an HTTP/1.1 request")
    if words[0] not in ("GET", "PUT"):
        return _error(HTTPStatus.METHOD_NOT_ALLOWED, "the methods are GET and PUT")
    hosts = _values(lines, "host")
    if len(hosts) != 1:
        return _error(HTTPStatus.BAD_REQUEST, "expected exactly one Host header")
    lengths = _values(lines, "content-length") or ["0"]
    if len(lengths) != 1 or not lengths[0].isdecimal() or len(lengths[0]) > _LENGTH_DIGITS_MAX:
        return _error(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the body must be smaller than {10**_LENGTH_DIGITS_MAX} bytes",
        )
    host, _, port = hosts[0].rpartition(":")
    name = host if port.isdecimal() and host else hosts[0]
    path = words[1].partition("?")[0]
    return HttpRequest(words[0], path, name.removeprefix("[").removesuffix("]"), int(lengths[0]))


def _values(lines: list[str], name: str) -> list[str]:
    """The values of a header, one for each occurrence."""
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith(f"{name}:")]


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _error(status: HTTPStatus, detail: str) -> HttpResponse:
    return HttpResponse(status, f"{status.phrase}: {detail}\n".encode())
