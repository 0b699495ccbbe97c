"""The live page of a whole group: it passes on what the nodes send, and changes orders on this machine."""

import asyncio
from contextlib import AsyncExitStack

import msgspec
import pytest

from priocast.core.errors import InvalidInput
from priocast.operations.group_console import GroupConsole
from priocast.runtime.admin.live_updates import LiveNode, PageUpdate
from priocast.testing.addresses import free_addresses
from support.nodes import nodes
from support.waiting import run, wait_until


def gathered(console: GroupConsole) -> list[LiveNode]:
    update = msgspec.json.decode(console.gather(), type=PageUpdate)
    return [msgspec.json.decode(node, type=LiveNode) for node in update.nodes]


async def gathered_from(console: GroupConsole, addresses: list[str]) -> dict[str, LiveNode]:
    """The last update of each node, once all have sent one."""
    found: dict[str, LiveNode] = {}

    def is_complete() -> bool:
        found.update({node.address: node for node in gathered(console)})
        return set(addresses) <= found.keys()

    await wait_until(is_complete)
    return found


def test_all_nodes_are_followed_and_one_that_does_not_reply_is_named() -> None:
    async def test() -> None:
        *served, nowhere = map(str, free_addresses(3))
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(nodes(2, "tickets"))
            for node, address in zip(made, served, strict=True):
                await stack.enter_async_context(node.serve_admin(address))
            console = GroupConsole([*served, nowhere])
            console.start()
            found = await gathered_from(console, [*served, nowhere])
            assert [found[address].groups[0].status.position for address in served] == [0, 0]
            assert found[nowhere].problem
            console.stop()
            await asyncio.sleep(0)
            assert not gathered(console)

    run(test)


def test_an_order_is_changed_at_a_node_of_this_machine() -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (node,), node.serve_admin("127.0.0.1:0") as admin:
            console = GroupConsole([admin.url.removeprefix("http://").removesuffix("/")])
            body = {"group": "tickets", "order": "causal-history"}
            assert "will be ordered by causal-history" in await console.change_order(
                msgspec.json.encode(body)
            )
            membership = node.groups["tickets"].member.membership
            await wait_until(lambda: membership.ordering.order == "causal-history")
            with pytest.raises(InvalidInput, match="no node of this machine is in the group 'audit'"):
                await console.change_order(msgspec.json.encode(body | {"group": "audit"}))
            with pytest.raises(InvalidInput, match="there is no protocol 'paxos'"):
                await console.change_order(msgspec.json.encode(body | {"order": "paxos"}))

    run(test)
