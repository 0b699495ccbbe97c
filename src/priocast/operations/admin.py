"""The node's answers over HTTP: `GET /metrics` and `GET /status` about itself; `PUT /order` changes an order.

It runs on the event loop of the node, in asyncio streams: a status is read between two turns of the members,
so it needs no lock and never shows half a change. A server in a thread would have to hop to the loop for each
status, and bring a whole HTTP implementation where two fixed paths are asked for. So it is a small one, and
strict: one request a connection, a head and a body of a few kilobytes, a few seconds and connections.

It gives away names, addresses and loads, and asks for no proof. Therefore it listens on a loopback address
unless the user allows otherwise, and there answers only to a `Host` that is one, so that a web page that a
browser on this machine has open cannot read it under a name of its own. Changes it takes only from this
machine, whatever is allowed.
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
    """What a request gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"

    def encoded(self) -> bytes:
        """The answer as it goes over the wire; it is the last one on its connection."""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + self.body


class HttpRequest(NamedTuple):
    """The head of a request."""

    method: str
    path: str
    host: str
    body_bytes: int


class Admin:
    """Answers for one node, as an asynchronous context manager."""

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
                f"cannot listen on {self._address} for admin: {error.strerror or error}; choose a free port"
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
                answer = await self._answer(reader, peer[0] if peer else "")
                writer.write(answer.encoded())
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, peer: str) -> HttpResponse:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request = _read_head(head)
            if isinstance(request, HttpResponse):
                return request
            body = await reader.readexactly(request.body_bytes)
        except asyncio.LimitOverrunError:
            return _refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a head has {HEAD_BYTES_MAX} bytes")
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("hung up in the middle of a request") from error
        if not self._allow_remote and not _is_loopback(request.host):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "ask for 127.0.0.1, [::1] or localhost")
        if request.method == "GET":
            return self._page(request.path)
        if not _is_loopback(peer):
            return _refused(HTTPStatus.FORBIDDEN, "changes are taken from the node's own machine only")
        return self._change(request.path, body)

    def _change(self, path: str, body: bytes) -> HttpResponse:
        if path != "/order":
            return _refused(HTTPStatus.NOT_FOUND, "there is PUT /order")
        try:
            said = change_order(self._node, body)
        except PriocastError as error:
            return HttpResponse(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error}\n".encode())
        return HttpResponse(HTTPStatus.ACCEPTED, f"{said}\n".encode())

    def _page(self, path: str) -> HttpResponse:
        match path:
            case "/metrics":
                from priocast.operations.metrics import CONTENT_TYPE, exposition  # 30 ms, for who asks only

                return HttpResponse(HTTPStatus.OK, exposition(self._node), CONTENT_TYPE)
            case "/status":
                body = msgspec.json.encode(node_status(self._node))
                return HttpResponse(HTTPStatus.OK, body, "application/json")
            case _:
                return _refused(HTTPStatus.NOT_FOUND, "there are /metrics and /status")


def check_admin_address(text: str, *, allow_remote: bool) -> Address:
    """Where to listen; anywhere but on this machine's own address only if it is allowed."""
    address = parse_address(text)
    if not allow_remote and not _is_loopback(address.host):
        raise InvalidAddress(
            f"{text} can be reached from other machines, and whoever asks there is answered: listen on "
            "127.0.0.1, or set allow_remote = true under [node.admin] on a network that is trusted"
        )
    return address


def _read_head(head: bytes) -> HttpRequest | HttpResponse:
    """What is asked for, or why it is refused."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _refused(HTTPStatus.BAD_REQUEST, "this is HTTP/1.1")
    if words[0] not in ("GET", "PUT"):
        return _refused(HTTPStatus.METHOD_NOT_ALLOWED, "there are only GET and PUT")
    hosts = _values(lines, "host")
    if len(hosts) != 1:
        return _refused(HTTPStatus.BAD_REQUEST, "name one Host")
    lengths = _values(lines, "content-length") or ["0"]
    if len(lengths) != 1 or not lengths[0].isdecimal() or len(lengths[0]) > _LENGTH_DIGITS_MAX:
        return _refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a body has some kilobytes at most")
    host, _, port = hosts[0].rpartition(":")
    named = host if port.isdecimal() and host else hosts[0]
    path = words[1].partition("?")[0]
    return HttpRequest(words[0], path, named.removeprefix("[").removesuffix("]"), int(lengths[0]))


def _values(lines: list[str], name: str) -> list[str]:
    """What a header says, each time it is there."""
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith(f"{name}:")]


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _refused(status: HTTPStatus, words: str) -> HttpResponse:
    return HttpResponse(status, f"{status.phrase}: {words}\n".encode())
