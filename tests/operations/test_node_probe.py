"""Probing nodes, and the problems derived from their replies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest

import priocast
from priocast.core.errors import DeadlineExceeded
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.operations.node_probe import Probed, probe_all, problems_of
from priocast.runtime.admin.endpoint import Admin
from priocast.runtime.admin.node_status import NodeStatus, node_status
from priocast.runtime.group import Group
from priocast.testing.addresses import free_addresses
from support.nodes import nodes
from support.waiting import run, wait_until


@asynccontextmanager
async def probed_nodes(size: int, **options: object) -> AsyncIterator[tuple[list[priocast.Node], list[str]]]:
    addresses = [str(address) for address in free_addresses(size)]
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(nodes(size, "tickets", **options))
        for node, address in zip(made, addresses, strict=True):
            await stack.enter_async_context(Admin(node, address))
        yield made, addresses


def test_healthy_group_has_no_problems() -> None:
    async def test() -> None:
        async with probed_nodes(3) as (_, addresses):
            probed = await probe_all(addresses)
            assert [each.status.node for each in probed if each.status] == ["a", "b", "c"]
            assert problems_of(probed) == []

    run(test)


def test_suspended_member_and_silent_node_are_reported() -> None:
    async def test() -> None:
        [unused] = free_addresses(1)
        async with probed_nodes(2) as ((a, b), addresses):
            await a.network.close()
            await wait_until(lambda: Group(b.groups["tickets"]).status().state == "suspended")
            probed = await probe_all([addresses[1], str(unused)])
            assert problems_of(probed) == [
                f"{unused} does not reply: Connection refused",
                f"tickets: {b.groups['tickets'].member.me} is suspended",
            ]

    run(test)


def test_members_in_different_views_are_reported() -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as made:
            statuses = [node_status(node) for node in made]
            view = View(2, (ProcessId("c", 7),))
            other = msgspec.structs.replace(statuses[2].groups[0], view=view, member="c#7")
            statuses[2] = msgspec.structs.replace(statuses[2], groups=[other])
            [problem] = problems_of([Probed(address="x", status=status) for status in statuses])
            assert problem.startswith("tickets: members are in different views: a#")
            assert problem.endswith("in view 1 (a, b, c); c#7 in view 2 (c)")

    run(test)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (b"", "not a Priocast node: it closed the connection"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "not a Priocast node: it replied with status 404"),
        (b"\xff\xfe\x00P", "not an admin address: the reply is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "not a Priocast node, or one of another version"),
        (None, r"no reply within 0\.2 s"),
    ],
)
def test_invalid_replies_are_reported(response: bytes | None, problem: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if response is None:
            await reader.read()
        else:
            writer.write(response)
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(DeadlineExceeded, match=rf"no node replies \(127.0.0.1:{port}: {problem}"):
                await probe_all([f"127.0.0.1:{port}"], 0.2)

    run(test)


def test_status_survives_encoding_and_decoding() -> None:
    async def test() -> None:
        async with nodes(2, "tickets") as (a, _):
            status = node_status(a)
            assert msgspec.json.decode(msgspec.json.encode(status), type=NodeStatus) == status

    run(test)
