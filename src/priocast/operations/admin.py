"""The node's answers to questions about itself, over HTTP: `GET /metrics` and `GET /status`.

It runs on the event loop of the node, in asyncio streams: a status is read between two turns of the members,
so it needs no lock and never shows half a change. A server in a thread would have to hop to the loop for each
status, and bring a whole HTTP implementation where two fixed paths are asked for. So it is a small one, and
strict: one request a connection, nothing but GET, a head of a few kilobytes, a few seconds and connections.

It gives away names, addresses and loads, and asks for no proof. Therefore it listens on a loopback address
unless the user allows otherwise, and there answers only to a `Host` that is one, so that a web page that a
browser on this machine has open cannot read it under a name of its own.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from types import TracebackType
from typing import NamedTuple

import msgspec

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address, parse_address
from priocast.operations.node_status import node_status
from priocast.runtime.node import Node

HEAD_BYTES_MAX = 4096
REQUEST_SECONDS = 5.0
CONNECTIONS_MAX = 16


class Answer(NamedTuple):
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
                answer = await self._answer(reader)
                writer.write(answer.encoded())
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a head has {HEAD_BYTES_MAX} bytes")
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("hung up in the middle of a request") from error
        request = _read_head(head)
        if isinstance(request, Answer):
            return request
        path, host = request
        if not self._allow_remote and not _is_loopback(host):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "ask for 127.0.0.1, [::1] or localhost")
        return self._page(path)

    def _page(self, path: str) -> Answer:
        match path:
            case "/metrics":
                from priocast.operations.metrics import CONTENT_TYPE, exposition  # 30 ms, for who asks only

                return Answer(HTTPStatus.OK, exposition(self._node), CONTENT_TYPE)
            case "/status":
                body = msgspec.json.encode(node_status(self._node))
                return Answer(HTTPStatus.OK, body, "application/json")
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


def _read_head(head: bytes) -> tuple[str, str] | Answer:
    """The path and the host of a request, or why it is refused."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _refused(HTTPStatus.BAD_REQUEST, "this is HTTP/1.1")
    if words[0] != "GET":
        return _refused(HTTPStatus.METHOD_NOT_ALLOWED, "there is only GET")
    hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
    if len(hosts) != 1:
        return _refused(HTTPStatus.BAD_REQUEST, "name one Host")
    host, _, port = hosts[0].rpartition(":")
    named = host if port.isdecimal() and host else hosts[0]
    return words[1].partition("?")[0], named.removeprefix("[").removesuffix("]")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _refused(status: HTTPStatus, words: str) -> Answer:
    return Answer(status, f"{status.phrase}: {words}\n".encode())
