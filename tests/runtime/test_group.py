"""The guarantees for the application, over every network."""

import asyncio

import pytest

import priocast
from support.groups import NETWORKS, groups, ids, reading, take
from support.waiting import PATIENCE_SECONDS, run, wait_until

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


def test_the_stream_starts_with_the_view(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3) as members:
            first = await anext(aiter(members[1]))
            assert isinstance(first, priocast.ViewChange)
            assert [member.name for member in first.view.members] == ["a", "b", "c"]
            assert (first.position, str(first.reason), first.order) == (
                0,
                "the group was founded",
                "sequencer-ub",
            )
            assert first.view == members[1].view

    run(test)


def test_an_urgent_message_overtakes_waiting_messages(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=4)
        async with groups(network, 2, options=options) as members:
            for number in range(50):
                await members[0].broadcast(b"%d" % number, priority=priocast.ROUTINE)
            await wait_until(lambda: members[0].backlog == 46)
            await members[1].broadcast(b"fire", priority=priocast.URGENT)
            await wait_until(lambda: members[0].backlog == 47)
            seen = await asyncio.gather(*(take(member, 51) for member in members))
            position = next(d.position for d in seen[0] if d.message.payload == b"fire")
            assert position <= 4, "only messages that were ordered already come first"
            assert ids(seen[0]) == ids(seen[1])

    run(test)


def test_a_plain_group_keeps_the_order_of_its_senders_and_reports_the_priorities(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=2)
        async with groups(network, 2, options=options, prioritised=False) as members:
            for number in range(40):
                await members[0].broadcast(b"%d" % number, priority=number)
            _, seen = await asyncio.gather(*(take(member, 40) for member in members))
            assert [delivery.message.payload for delivery in seen] == [b"%d" % number for number in range(40)]
            assert [delivery.message.priority for delivery in seen] == list(range(40))

    run(test)


def test_batches_contain_the_same_stream(network: str) -> None:
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


def test_messages_and_batches_can_be_consumed_alternately(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            await members[0].broadcast_many([b"%d" % number for number in range(10)])
            first = await take(members[1], 3)
            rest = await anext(members[1].batches())
            assert [delivery.message.payload for delivery in first] == [b"0", b"1", b"2"]
            assert (rest.position, rest.first, rest.payloads[0]) == (3, 3, b"3")

    run(test)


def test_the_largest_and_the_empty_payload_are_delivered_unchanged(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            large = bytes(range(256)) * 4096
            await members[0].broadcast(large)
            await members[0].broadcast(b"")
            seen = await take(members[1], 2)
            assert seen[0].message.payload == large
            assert seen[1].message.payload == b""

    run(test)


def test_invalid_input_is_rejected_and_changes_nothing(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            group = members[0]
            with pytest.raises(priocast.PriorityOutOfRange, match="0 to 255"):
                await group.broadcast(b"x", priority=256)
            with pytest.raises(priocast.PriorityOutOfRange):
                group.broadcast_nowait(b"x", priority=True)
            with pytest.raises(priocast.PayloadTooLarge, match="at most 1,048,576 bytes"):
                await group.broadcast(bytes(1024 * 1024 + 1))
            with pytest.raises(priocast.PayloadTooLarge):
                await group.broadcast_many([b"x", bytes(1024 * 1024 + 1)])
            with pytest.raises(priocast.InvalidInput, match="encode it first"):
                await group.broadcast("text")  # type: ignore[arg-type]
            with pytest.raises(priocast.InvalidInput, match="encode it first"):
                await group.broadcast_many([b"x", bytearray(b"y")])  # type: ignore[list-item]
            with pytest.raises(priocast.InvalidInput, match=r"not the text 'bob': write \['bob'\]"):
                await group.broadcast(b"x", to="bob")
            with pytest.raises(priocast.InvalidInput, match="cannot be the name of a member"):
                await group.broadcast_many([b"x"], to=["bob", ""])
            await group.broadcast(b"good")
            assert ids(await take(members[1], 1)) == ["a#1/96/0"]

    run(test)


def test_without_room_nowait_raises_and_a_timeout_ends_the_wait(network: str) -> None:
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
            async with reading(*members):
                await wait_until(lambda: not group.backlog)

    run(test)


def test_a_blocked_broadcast_is_admitted_when_messages_are_consumed(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=4, queue_max=64, submit_max=32)
        async with groups(network, 2, options=options) as members:

            async def send() -> None:
                for number in range(500):
                    await members[0].broadcast(
                        b"%d" % number, priority=number % 3 * 100, timeout_seconds=PATIENCE_SECONDS
                    )

            sending = asyncio.create_task(send())
            seen = await asyncio.gather(*(take(member, 500) for member in members))
            await sending
            assert ids(seen[0]) == ids(seen[1])
            for level in (0, 100, 200):
                numbers = [d.message.number for d in seen[0] if d.message.level == level]
                assert numbers == list(range(len(numbers)))

    run(test)


def test_one_call_can_broadcast_more_messages_than_the_queue_holds(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=8, queue_max=32, submit_max=32)
        async with groups(network, 2, options=options) as members:
            sending = asyncio.create_task(members[0].broadcast_many([b"%d" % n for n in range(300)]))
            seen = await asyncio.gather(*(take(member, 300) for member in members))
            await sending
            assert [d.message.payload for d in seen[1]] == [b"%d" % n for n in range(300)]

    run(test)


def test_the_most_urgent_blocked_broadcast_is_admitted_first(network: str) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=1, queue_max=32, submit_max=32)
        async with groups(network, 2, options=options) as members:
            group, admitted = members[0], []

            async def fill(priority: int, payload: bytes) -> None:
                await group.broadcast(payload, priority)
                admitted.append(payload)

            tasks = [asyncio.create_task(fill(priocast.HIGHEST, b"%d" % n)) for n in range(65)]
            await wait_until(lambda: all(member.status().unconsumed for member in members))
            tasks.append(asyncio.create_task(fill(priocast.ROUTINE, b"routine")))
            await asyncio.sleep(0.05)
            tasks.append(asyncio.create_task(fill(priocast.HIGHEST, b"urgent")))
            await asyncio.sleep(0.05)
            await asyncio.gather(*(take(member, 67) for member in members), *tasks)
            assert admitted.index(b"urgent") < admitted.index(b"routine")

    run(test)


def test_a_group_that_was_left_rejects_all_calls(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            await members[0].broadcast(b"last")
        for group in members:
            with pytest.raises(priocast.GroupClosed, match="the group was left"):
                await group.broadcast(b"too late")
            with pytest.raises(priocast.GroupClosed, match="the group was left"):
                group.broadcast_nowait(b"too late")
            with pytest.raises(priocast.GroupClosed, match="the group was left"):
                await take(group, 2)

    run(test)


def test_a_message_to_some_members_is_delivered_only_there_at_its_position(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3) as members:
            await members[0].broadcast(b"for all")
            await members[0].broadcast(b"for b", to=["b"])
            await members[0].broadcast_many([b"for a and c", b"and this"], to=["a", "c"])
            members[0].broadcast_nowait(b"for c", to=["c"])
            await members[0].broadcast(b"end")
            async with reading(*members) as readers:
                for reader in readers:
                    await reader.wait_payloads(b"end")
            placed = [{d.position: d.message.payload for d in reader.deliveries} for reader in readers]
            assert placed == [
                {0: b"for all", 2: b"for a and c", 3: b"and this", 5: b"end"},
                {0: b"for all", 1: b"for b", 5: b"end"},
                {0: b"for all", 2: b"for a and c", 3: b"and this", 4: b"for c", 5: b"end"},
            ]

    run(test)


def test_a_safe_message_keeps_its_position_among_the_others(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3) as members:
            for number in range(60):
                await members[number % 3].broadcast(b"%d" % number, safe=number % 2 == 0)
            seen = await asyncio.gather(*(take(member, 60) for member in members))
            assert ids(seen[0]) == ids(seen[1]) == ids(seen[2])
            assert {d.message.payload for d in seen[0] if d.message.scope.safe} == {
                b"%d" % number for number in range(0, 60, 2)
            }

    run(test)


def test_a_safe_group_delivers_only_what_all_members_have_received(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3, delivery="safe") as members:
            for member in members:
                await member.broadcast_many([b"%d" % number for number in range(100)])
            seen = await asyncio.gather(*(take(member, 300) for member in members))
            assert ids(seen[0]) == ids(seen[1]) == ids(seen[2])
            assert members[0].status().delivery == "safe"

    run(test)


def test_the_order_can_be_changed_while_messages_flow(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3, options=priocast.OrderingOptions(window=8)) as members:
            async with reading(*members) as readers:
                for number in range(90):
                    await members[number % 3].broadcast(b"%d" % number, priority=number % 4 * 60)
                    if number == 30:
                        members[1].change_order("sequencer-ub", prioritised=False)
                        await wait_until(lambda: not members[1].status().prioritised)
                    if number == 60:
                        members[2].change_order(
                            "sequencer-ub", prioritised=True, starvation=priocast.Ageing(1_000_000)
                        )
                        await wait_until(lambda: members[0].status().prioritised)
                for reader in readers:
                    await reader.wait_payloads(*(b"%d" % number for number in range(90)))
            assert ids(readers[0].deliveries) == ids(readers[1].deliveries) == ids(readers[2].deliveries)
            assert sorted(readers[0].payloads) == sorted(b"%d" % number for number in range(90))
            assert [str(event.reason) for event in readers[0].views] == [
                "the group was founded",
                "the order changed to sequencer-ub",
                "the order changed to sequencer-ub",
            ]

    run(test)


def test_an_unknown_order_is_rejected_and_changes_nothing(network: str) -> None:
    async def test() -> None:
        async with groups(network, 2) as members:
            with pytest.raises(priocast.UnknownProtocol, match="no protocol 'ring'"):
                members[0].change_order("ring")
            assert members[0].status().order == "sequencer-ub"

    run(test)


def test_the_status_of_a_member(network: str) -> None:
    async def test() -> None:
        async with groups(network, 3, options=priocast.OrderingOptions(window=2)) as members:
            for number in range(8):
                await members[0].broadcast(b"%d" % number, priority=7)
            await wait_until(lambda: members[1].status().unconsumed == 2)
            status = members[0].status()
            assert (status.group, status.member, status.state) == ("test", "a#1", "active")
            assert status.view == members[1].view == members[0].view
            assert (status.order, status.prioritised, status.policy) == ("sequencer-ub", True, "primary")
            assert (status.position, status.backlog, status.unconsumed) == (0, 6, 2)
            assert [(queue.priority, queue.messages) for queue in status.queues] == [(7, 6)]
            assert [peer.member for peer in status.peers] == ["b#1", "c#1"]
            assert all(peer.suspicion < 1 for peer in status.peers)
            assert (status.views, status.incarnations) == (1, 1)
            assert status.last_change_reason == "the group was founded"
            assert status.rejections == {}
            await asyncio.gather(*(take(member, 8) for member in members))
            assert members[0].status().position == 8

    run(test)


def test_an_internal_error_stops_the_member_and_is_reported(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        faults: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(str(context)))
        async with groups(network, 2) as members:
            monkeypatch.setattr(members[0]._driver.member, "act", lambda _: 1 // 0)
            await members[0].broadcast(b"x")
            with pytest.raises(
                priocast.GroupClosed, match="a stopped because of an internal error: ZeroDivisionError"
            ):
                await take(members[0], 1)
        assert "ZeroDivisionError" in faults[0], "the full error is logged"

    run(test)
