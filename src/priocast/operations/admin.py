"""The admin endpoint of a node over HTTP: `GET /metrics`, `GET /status`, `POST /order` to change the order.

It runs on the event loop of the node, on asyncio streams: a status is read between two turns of the members,
so it needs no lock and is always consistent. A server in a thread would have to switch to the event loop for
each status, and three fixed paths do not need a full HTTP implementation. This one is small and strict: one
request per connection, limits on the size of head and body, on the time and on the number of connections.

It reveals names, addresses and load to everybody who can connect. Therefore it listens on a loopback address
unless the user allows otherwise. A request that a web page may have caused is rejected: one with an `Origin`,
and one whose `Host` is not the endpoint's own, which happens if a page's host name is made to point here (DNS
rebinding). A change also needs the token of the node, which only its user can read (`admin_token.py`), and a
JSON content type, and comes from this machine, even if remote reads are allowed.
"""

import asyncio
import logging
from contextlib import suppress
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from types import TracebackType
from typing import NamedTuple

import msgspec

from priocast.core.errors import InvalidAddress, PriocastError
from priocast.network.address import Address, parse_address
from priocast.operations.admin_token import TokenFile
from priocast.operations.node_status import node_status
from priocast.operations.order_change import change_order
from priocast.runtime.node import Node

HEAD_BYTES_MAX = 4096
REQUEST_SECONDS = 5.0
CONNECTIONS_MAX = 16
_LENGTH_DIGITS_MAX = 4

log = logging.getLogger("priocast.node")


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
    from_page: bool
    content_type: str
    token: str


class Admin:
    """Serves the admin endpoint of one node, as an asynchronous context manager."""

    def __init__(self, node: Node, listen: str, *, allow_remote: bool = False) -> None:
        self._node = node
        self._address = check_admin_address(listen, allow_remote=allow_remote)
        self._allow_remote = allow_remote
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._token: TokenFile | None = None

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
        try:
            self._token = TokenFile(self._address)
        except (OSError, PriocastError) as error:
            log.warning("the order cannot be changed over the admin endpoint: %s", error)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        if self._token is not None:
            self._token.remove()
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
        if problem := self._forbidden(request, peer):
            return _error(HTTPStatus.FORBIDDEN, problem)
        return self._page(request.path) if request.method == "GET" else self._change(request, body)

    def _forbidden(self, request: HttpRequest, peer: str) -> str:
        """Why this request is not served, whatever it asks for; empty if it is."""
        reads = request.method == "GET"
        if request.from_page:
            return "requests from web pages (with an Origin header) are not served"
        if not (self._allow_remote and reads) and not self._is_own(request.host):
            return f"the Host must be the endpoint's own: {self._address.host}, 127.0.0.1, [::1] or localhost"
        if reads:
            return ""
        if not _is_loopback(peer):
            return "changes are accepted from the node's own machine only"
        if self._token is None or not compare_digest(request.token.encode(), self._token.token.encode()):
            return "a change needs the token of this node, as Authorization: Bearer"
        return ""

    def _is_own(self, host: str) -> bool:
        return _is_loopback(host) or host == self._address.host

    def _change(self, request: HttpRequest, body: bytes) -> HttpResponse:
        if request.path != "/order":
            return _error(HTTPStatus.NOT_FOUND, "the only path for POST is /order")
        if request.content_type.partition(";")[0].strip().lower() != "application/json":
            return _error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json")
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
    if words[0] not in ("GET", "POST"):
        return _error(HTTPStatus.METHOD_NOT_ALLOWED, "the methods are GET and POST")
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
    scheme, _, token = _value(lines, "authorization").partition(" ")
    return HttpRequest(
        method=words[0],
        path=path,
        host=name.removeprefix("[").removesuffix("]"),
        body_bytes=int(lengths[0]),
        from_page=bool(_values(lines, "origin")),
        content_type=_value(lines, "content-type"),
        token=token.strip() if scheme.lower() == "bearer" else "",
    )


def _values(lines: list[str], name: str) -> list[str]:
    """The values of a header, one for each occurrence."""
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith(f"{name}:")]


def _value(lines: list[str], name: str) -> str:
    """The value of a header that occurs once; else empty."""
    values = _values(lines, name)
    return values[0] if len(values) == 1 else ""


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _error(status: HTTPStatus, detail: str) -> HttpResponse:
    return HttpResponse(status, f"{status.phrase}: {detail}\n".encode())
