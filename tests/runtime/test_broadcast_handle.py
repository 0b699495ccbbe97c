"""The handle that `broadcast` returns, and the position that it can be awaited for."""

import asyncio

import pytest

import priocast
from support.groups import Cluster, entered, groups, quick, reading
from support.waiting import run


def test_a_broadcast_can_be_awaited_for_its_position() -> None:
    async def test() -> None:
        async with groups("memory", 3) as members, reading(*members) as readers:
            sent = [await members[number % 3].broadcast(str(number).encode()) for number in range(30)]
            urgent = await members[1].broadcast(b"urgent", priority=priocast.URGENT)
            to_others = members[2].broadcast_nowait(b"to others", to=["a"])
            positions = [await each for each in [*sent, urgent, to_others]]
            assert set(positions) == set(range(32))
            at: dict[int | None, bytes] = {
                each.position: each.message.payload for each in readers[0].deliveries
            }
            broadcast = [*(str(number).encode() for number in range(30)), b"urgent", b"to others"]
            assert [at[position] for position in positions] == broadcast

    run(test)


def test_a_broadcast_that_waited_for_room_has_a_position_too() -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(queue_max=4)
        async with groups("memory", 2, options=options) as members, reading(*members) as readers:
            sent = await asyncio.gather(*(members[1].broadcast(str(number).encode()) for number in range(40)))
            positions = [await each for each in sent]
            assert [readers[0].payloads[position] for position in positions] == [  # type: ignore[index]
                str(number).encode() for number in range(40)
            ]

    run(test)


def test_a_position_that_nobody_consumes_times_out_and_says_why() -> None:
    async def test() -> None:
        async with groups("memory", 1) as (member,):
            sent = await member.broadcast(b"x")
            with pytest.raises(priocast.DeadlineExceeded, match=r"does its application consume the stream\?"):
                await sent.position(timeout_seconds=0.05)

    run(test)


def test_an_evicted_member_does_not_know_the_positions_of_what_it_broadcast() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with (
            entered(*(cluster.join(name, membership=quick(3), delivery="safe") for name in "abc")) as members,
            reading(*members) as readers,
        ):
            for other in "ab":
                cluster.hub.cut("c", other)
                cluster.hub.cut(other, "c")
            sent = await members[2].broadcast(b"x")
            waiting = asyncio.create_task(sent.position())
            await readers[0].wait_members("ab")
            cluster.hub.heal()
            assert await waiting is None
            await readers[0].wait_payloads(b"x")
            assert await sent is None

    run(test)
