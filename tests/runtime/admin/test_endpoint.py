"""The admin endpoint: its pages, and what it rejects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address
from priocast.runtime.admin import http_server
from priocast.runtime.admin.admin_address import check_admin_address
from priocast.runtime.admin.endpoint import Admin
from priocast.runtime.admin.http_server import CONNECTIONS_MAX, HEAD_BYTES_MAX
from priocast.runtime.admin.node_status import NodeStatus
from priocast.testing.addresses import free_addresses
from support.nodes import nodes
from support.waiting import PATIENCE_SECONDS, run


@asynccontextmanager
async def admin(allow_remote: bool = False) -> AsyncIterator[Address]:
    [address] = free_addresses(1)
    async with nodes(1, "tickets") as (node,), Admin(node, str(address), allow_remote=allow_remote):
        yield address


async def ask(address: Address, request: bytes) -> tuple[str, bytes]:
    """The status line and the body of the response."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    response = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
    writer.close()
    head, _, body = response.partition(b"\r\n\r\n")
    return head.decode().partition("\r\n")[0], body


def get(path: str, host: str = "127.0.0.1:9401") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode()


def test_status_and_metrics_pages() -> None:
    async def test() -> None:
        async with admin() as address:
            line, body = await ask(address, get("/status"))
            assert line == "HTTP/1.1 200 OK"
            status = msgspec.json.decode(body, type=NodeStatus)
            assert (status.node, status.groups[0].group, status.groups[0].state) == (
                "a",
                "tickets",
                "active",
            )
            line, body = await ask(address, get("/metrics?ignored=1", "localhost"))
            assert line == "HTTP/1.1 200 OK"
            assert b'priocast_view_number{group="tickets",member="a"} 1.0' in body

    run(test)


@pytest.mark.parametrize(
    ("request_bytes", "answer"),
    [
        (get("/nowhere"), "404 Not Found"),
        (get("/page/../endpoint.py"), "404 Not Found"),
        (get("/status").replace(b"Accept", b"Origin: http://127.0.0.1:9401\r\nAccept"), "200 OK"),
        (get("/status").replace(b"Accept", b"Origin: http://127.0.0.1:9402\r\nAccept"), "403 Forbidden"),
        (get("/status").replace(b"Accept", b"Sec-Fetch-Site: cross-site\r\nAccept"), "403 Forbidden"),
        (
            get("/").replace(b"Accept", b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nAccept"),
            "200 OK",
        ),
        (get("/status", "evil.example"), "403 Forbidden"),
        (get("/status").replace(b"Accept", b"Origin: http://evil.example\r\nAccept"), "403 Forbidden"),
        (get("/status").replace(b"Accept", b"origin: null\r\nAccept"), "403 Forbidden"),
        (get("/status", "[::1]:9401"), "200 OK"),
        (get("/status").replace(b"GET", b"PUT"), "405 Method Not Allowed"),
        (get("/status").replace(b"GET", b"OPTIONS"), "405 Method Not Allowed"),
        (b"GET /status HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400 Bad Request"),
        (b"GET /status SMTP\r\nHost: localhost\r\n\r\n", "400 Bad Request"),
        (b"\xff\xfe\x00\r\n\r\n", "400 Bad Request"),
        (b"GET /" + b"x" * 2 * HEAD_BYTES_MAX, "431 Request Header Fields Too Large"),
    ],
)
def test_invalid_requests_get_an_error_status(request_bytes: bytes, answer: str) -> None:
    async def test() -> None:
        async with admin() as address:
            line, _ = await ask(address, request_bytes)
            assert line == f"HTTP/1.1 {answer}"

    run(test)


def test_any_host_is_served_if_remote_access_is_allowed() -> None:
    async def test() -> None:
        async with admin(allow_remote=True) as address:
            assert (await ask(address, get("/status", "node-a.example")))[0] == "HTTP/1.1 200 OK"

    run(test)


def test_idle_connections_are_closed_and_others_are_served_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with admin() as address:
            idle = [await asyncio.open_connection(*address) for _ in range(CONNECTIONS_MAX - 1)]
            assert (await ask(address, get("/status")))[0] == "HTTP/1.1 200 OK"
            for reader, writer in idle:
                assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
                writer.close()

    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 1.5)
    run(test)


def test_connection_above_the_limit_is_closed_at_once() -> None:
    async def test() -> None:
        async with admin() as address:
            idle = [await asyncio.open_connection(*address) for _ in range(CONNECTIONS_MAX)]
            reader, writer = await asyncio.open_connection(*address)
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
            for each in (writer, *(writer for _, writer in idle)):
                each.close()

    run(test)


def test_connection_closed_in_the_middle_of_a_request() -> None:
    async def test() -> None:
        async with admin() as address:
            _, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /sta")
            writer.close()
            assert (await ask(address, get("/status")))[0] == "HTTP/1.1 200 OK"

    run(test)


@pytest.mark.parametrize("address", ["0.0.0.0:9401", "10.0.0.1:9401", "node-a.example:9401", "[::]:9401"])
def test_remote_address_must_be_allowed(address: str) -> None:
    with pytest.raises(InvalidAddress, match=r"set allow_remote = true under \[node.admin\]"):
        check_admin_address(address, allow_remote=False)
    assert str(check_admin_address(address, allow_remote=True)) == address


@pytest.mark.parametrize("address", ["127.0.0.1:9401", "[::1]:9401", "localhost:9401", "127.9.9.9:1"])
def test_loopback_address_needs_no_permission(address: str) -> None:
    assert str(check_admin_address(address, allow_remote=False)) == address


def test_port_in_use_is_named() -> None:
    async def test() -> None:
        async with admin() as address, nodes(1) as (node,):
            with pytest.raises(InvalidAddress, match=f"cannot listen on the admin address {address}"):
                await Admin(node, str(address)).__aenter__()

    run(test)
