"""Iterating over a group, event by event."""

import asyncio

import pytest

import priocast
from support.groups import groups, take
from support.waiting import run


def test_an_iteration_that_was_cancelled_while_it_waited_can_go_on() -> None:
    async def test() -> None:
        async with groups("memory", 2) as members:
            stream = aiter(members[1])
            assert isinstance(await anext(stream), priocast.ViewChange)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(stream)
            await members[0].broadcast(b"seat")
            event = await anext(stream)
            assert isinstance(event, priocast.Delivery)
            assert event.message.payload == b"seat"

    run(test)


def test_another_iteration_continues_within_a_batch() -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            await group.broadcast_many([b"%d" % number for number in range(5)])
            await group.broadcast_many([b"last"], priocast.URGENT)
            payloads = [each.message.payload for each in await take(group, 3)]
            payloads += [each.message.payload for each in await take(group, 3)]
            assert payloads == [b"last", b"0", b"1", b"2", b"3", b"4"]

    run(test)


def test_a_closed_group_says_so_each_time_it_is_asked() -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            stream = aiter(group)
            await anext(stream)
        for _ in range(2):
            with pytest.raises(priocast.GroupClosed, match="left"):
                await anext(stream)

    run(test)
