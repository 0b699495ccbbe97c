"""What the application is promised, over every network."""

import asyncio

import pytest

import priocast
from support.groups import NETWORKS, groups, ids, joinings, run, take

pytestmark = pytest.mark.parametrize("network", NETWORKS)


def test_every_member_sees_the_same_messages_in_the_same_order(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3) as members:
            for number in range(300):
                for member in members:
                    await member.broadcast(b"%d" % number, priority=number % 256)
            seen = await asyncio.gather(*(take(member, 900) for member in members))
            assert ids(seen[0]) == ids(seen[1]) == ids(seen[2])
            assert [delivery.position for delivery in seen[0]] == list(range(900))
            assert len(set(ids(seen[0]))) == 900
            assert all(len(delivery.message.payload) <= 3 for delivery in seen[0])

    run(test)


def test_the_stream_begins_with_the_view(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3) as members:
            first = await anext(aiter(members[1]))
            assert isinstance(first, priocast.ViewChange)
            assert [member.name for member in first.view.members] == ["a", "b", "c"]

    run(test)


def test_an_urgent_message_overtakes_what_waits(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=4)
        async with groups(network, 2, options=options) as members:
            for number in range(50):
                await members[0].broadcast(b"%d" % number, priority=priocast.ROUTINE)
            await asyncio.sleep(0.05)
            await members[1].broadcast(b"fire", priority=priocast.URGENT)
            await asyncio.sleep(0.05)
            seen = await asyncio.gather(*(take(member, 51) for member in members))
            place = next(d.position for d in seen[0] if d.message.payload == b"fire")
            assert place <= 4, "only what was ordered already comes first"
            assert ids(seen[0]) == ids(seen[1])

    run(test)


def test_a_plain_group_keeps_the_order_of_its_senders_and_tells_the_priorities(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=2)
        async with groups(network, 2, options=options, prioritised=False) as members:
            for number in range(40):
                await members[0].broadcast(b"%d" % number, priority=number)
            _, seen = await asyncio.gather(*(take(member, 40) for member in members))
            assert [delivery.message.payload for delivery in seen] == [b"%d" % number for number in range(40)]
            assert [delivery.message.priority for delivery in seen] == list(range(40))

    run(test)


def test_batches_carry_the_same_stream(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            await members[0].broadcast_many([b"%d" % number for number in range(1000)], priority=7)
            one_by_one = asyncio.create_task(take(members[0], 1000))
            payloads: list[bytes] = []
            async for batch in members[1].batches():
                assert batch.position == len(payloads)
                assert batch.priority_of(0) == 7
                payloads += batch.payloads
                if len(payloads) == 1000:
                    break
            assert payloads == [b"%d" % number for number in range(1000)]
            assert ids(await one_by_one)[-1] == "a#1/7/999"

    run(test)


def test_messages_and_batches_can_be_taken_in_turns(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            await members[0].broadcast_many([b"%d" % number for number in range(10)])
            first = await take(members[1], 3)
            rest = await anext(members[1].batches())
            assert [delivery.message.payload for delivery in first] == [b"0", b"1", b"2"]
            assert (rest.position, rest.first, rest.payloads[0]) == (3, 3, b"3")

    run(test)


def test_the_largest_payload_and_the_empty_one_arrive_whole(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            large = bytes(range(256)) * 4096
            await members[0].broadcast(large)
            await members[0].broadcast(b"")
            seen = await take(members[1], 2)
            assert seen[0].message.payload == large
            assert seen[1].message.payload == b""

    run(test)


def test_bad_input_is_refused_and_changes_nothing(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            group = members[0]
            with pytest.raises(priocast.PriorityOutOfRange, match="0 to 255"):
                await group.broadcast(b"x", priority=256)
            with pytest.raises(priocast.PriorityOutOfRange):
                group.broadcast_nowait(b"x", priority=True)
            with pytest.raises(priocast.PayloadTooLarge, match="over the limit of 1,048,576"):
                await group.broadcast(bytes(1024 * 1024 + 1))
            with pytest.raises(priocast.PayloadTooLarge):
                await group.broadcast_many([b"x", bytes(1024 * 1024 + 1)])
            with pytest.raises(priocast.InvalidInput, match="encode it first"):
                await group.broadcast("text")  # type: ignore[arg-type]
            with pytest.raises(priocast.InvalidInput, match="encode it first"):
                await group.broadcast_many([b"x", bytearray(b"y")])  # type: ignore[list-item]
            await group.broadcast(b"good")
            assert ids(await take(members[1], 1)) == ["a#1/96/0"]

    run(test)


def test_without_room_nowait_raises_and_a_deadline_ends_the_wait(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=1, queue_max=16, submit_max=16)
        async with groups(network, 2, options=options) as members:
            group = members[0]
            with pytest.raises(priocast.Overloaded, match="slowest member has not consumed"):
                while True:
                    group.broadcast_nowait(b"x", priority=priocast.BACKGROUND)
                    await asyncio.sleep(0)
            with pytest.raises(priocast.DeadlineExceeded, match=r"2 of 2 message.* were not broadcast"):
                await group.broadcast_many([b"y", b"y"], priocast.BACKGROUND, timeout_seconds=0.05)
            group.broadcast_nowait(b"there is a reserve for me", priority=priocast.URGENT)

    run(test)


def test_whoever_waits_for_room_is_let_in_when_messages_are_consumed(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=4, queue_max=64, submit_max=32)
        async with groups(network, 2, options=options) as members:

            async def send() -> None:
                for number in range(500):
                    await members[0].broadcast(b"%d" % number, priority=number % 3 * 100, timeout_seconds=20)

            sending = asyncio.create_task(send())
            seen = await asyncio.gather(*(take(member, 500) for member in members))
            await sending
            assert ids(seen[0]) == ids(seen[1])
            for level in (0, 100, 200):
                numbers = [d.message.number for d in seen[0] if d.message.level == level]
                assert numbers == list(range(len(numbers)))

    run(test)


def test_more_messages_than_the_queue_holds_can_be_handed_over_at_once(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=8, queue_max=32, submit_max=32)
        async with groups(network, 2, options=options) as members:
            sending = asyncio.create_task(members[0].broadcast_many([b"%d" % n for n in range(300)]))
            seen = await asyncio.gather(*(take(member, 300) for member in members))
            await sending
            assert [d.message.payload for d in seen[1]] == [b"%d" % n for n in range(300)]

    run(test)


def test_the_most_urgent_of_those_who_wait_is_let_in_first(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=1, queue_max=32, submit_max=32)
        async with groups(network, 2, options=options) as members:
            group, admitted = members[0], []

            async def fill(priority: int, payload: bytes) -> None:
                await group.broadcast(payload, priority)
                admitted.append(payload)

            tasks = [asyncio.create_task(fill(priocast.HIGHEST, b"%d" % n)) for n in range(65)]
            await asyncio.sleep(0.05)
            tasks.append(asyncio.create_task(fill(priocast.ROUTINE, b"routine")))
            await asyncio.sleep(0.05)
            tasks.append(asyncio.create_task(fill(priocast.HIGHEST, b"urgent")))
            await asyncio.sleep(0.05)
            await asyncio.gather(*(take(member, 67) for member in members), *tasks)
            assert admitted.index(b"urgent") < admitted.index(b"routine")

    run(test)


def test_when_a_member_leaves_the_others_get_what_was_ordered_and_then_an_end(network: str) -> None:
    async def test() -> None:
        one, other = joinings(network, 2)
        group, leaving = await asyncio.gather(one.__aenter__(), other.__aenter__())
        await leaving.broadcast(b"goodbye")
        await other.__aexit__(None, None, None)
        assert [d.message.payload for d in await take(group, 1)] == [b"goodbye"]
        with pytest.raises(priocast.GroupClosed, match="b left"):
            await group.broadcast(b"too late")
        with pytest.raises(priocast.GroupClosed, match="b left"):
            await take(group, 1)
        await one.__aexit__(None, None, None)
        with pytest.raises(priocast.GroupClosed):
            await group.broadcast(b"much too late")

    run(test)


def test_a_fault_of_our_own_stops_the_member_and_says_so(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        faults: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(str(context)))
        async with groups(network, 2) as members:
            monkeypatch.setattr(members[0]._node.member, "act", lambda _: 1 // 0)
            await members[0].broadcast(b"x")
            with pytest.raises(priocast.GroupClosed, match="a fault of a itself: ZeroDivisionError"):
                await take(members[0], 1)
        assert "ZeroDivisionError" in faults[0], "and the log has all of it"

    run(test)
