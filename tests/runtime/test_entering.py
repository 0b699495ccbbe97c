"""`await` enters a group, a client or a replica without a block; what it yields can be left."""

import asyncio

import pytest

import priocast
from support.waiting import run


async def _delivered(group: priocast.Group) -> bytes:
    async for event in group:
        if isinstance(event, priocast.Delivery):
            return event.message.payload
    raise AssertionError("the stream ended")


def test_a_group_is_joined_and_left_without_a_block() -> None:
    async def test() -> None:
        group = await priocast.join("g", member="a", listen="127.0.0.1:0", peers=[])
        await group.broadcast(b"x")
        assert await _delivered(group) == b"x"
        await group.leave()
        with pytest.raises(priocast.GroupClosed):
            await group.broadcast(b"y")

    run(test)


def test_a_group_of_a_node_is_joined_and_left_without_a_block() -> None:
    async def test() -> None:
        async with priocast.open_node("a", hub=priocast.MemoryHub(), size=1) as node:
            group = await node.join("g")
            assert list(node.groups) == ["g"]
            await group.leave()
            assert list(node.groups) == []

    run(test)


def test_a_client_is_opened_and_closed_without_a_block() -> None:
    async def test() -> None:
        hub = priocast.MemoryHub()
        group = await priocast.join("g", member="a", hub=hub, size=1)
        delivered = asyncio.create_task(_delivered(group))
        client = await priocast.open_client("g", client="c", hub=hub)
        assert await client.send(b"x") == 0
        assert await delivered == b"x"
        await client.close()
        with pytest.raises(priocast.GroupClosed):
            await client.send(b"y")
        await group.leave()

    run(test)


def test_an_object_is_replicated_without_a_block() -> None:
    async def test() -> None:
        counter = await priocast.replicate(
            "g", priocast.ReplicatedCounter(), member="a", hub=priocast.MemoryHub(), size=1
        )
        assert await counter.add(5) == 5
        await counter.replica.close()
        with pytest.raises(priocast.GroupClosed):
            await counter.add(1)

    run(test)


def test_what_a_block_leaves_cannot_be_left_by_hand() -> None:
    async def test() -> None:
        async with priocast.join("g", member="a", hub=priocast.MemoryHub(), size=1) as group:
            with pytest.raises(priocast.InvalidInput, match="the group was entered with `async with`"):
                await group.leave()

    run(test)
