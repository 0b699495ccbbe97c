"""Qualities of service through the public API, over every network."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

import priocast
from priocast.core.network_properties import NetworkProperties
from priocast.services.requests import RequestCheck
from support.groups import NETWORKS, Cluster, entered, groups, quick
from support.waiting import run, wait_until

QUALITIES = (
    priocast.UNRELIABLE,
    priocast.best_effort(2),
    priocast.at_least(2),
    priocast.RELIABLE,
    priocast.CAUSAL,
    priocast.ATOMIC,
    priocast.TIGHT,
)


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop, with a time limit."""

    @wraps(test)
    def running(*arguments: Any, **named: Any) -> None:
        run(lambda: test(*arguments, **named))

    return running


async def take_services(group: priocast.Group, count: int) -> list[priocast.ServiceDelivery]:
    """The next `count` messages with a quality of service."""
    found: list[priocast.ServiceDelivery] = []
    async for event in group:
        if isinstance(event, priocast.ServiceDelivery):
            found.append(event)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("network", NETWORKS)
@in_a_loop
async def test_every_quality_reaches_the_members_over_every_network(network: str) -> None:
    async with groups(network, 3) as members:
        a = members[0]
        takers = [asyncio.create_task(take_services(each, len(QUALITIES))) for each in members]
        for number, quality in enumerate(QUALITIES):
            receipt = await a.send(b"%d" % number, quality=quality, priority=9)
            assert receipt.accepted and receipt.message.sender == a.me
        for deliveries in await asyncio.gather(*takers):
            assert {each.payload: each.quality for each in deliveries} == {
                b"%d" % number: quality for number, quality in enumerate(QUALITIES)
            }
            assert {(each.sender, each.priority) for each in deliveries} == {(a.me, 9)}


@in_a_loop
async def test_units_are_delivered_one_by_one_to_the_named_members() -> None:
    async with groups("memory", 3) as (a, b, _):
        receipt = await a.send([b"x", b"y"], quality=priocast.ATOMIC, to=["b"])
        assert (receipt.answered, receipt.rejected, receipt.missing, receipt.rounds) == (("b",), {}, (), 1)
        deliveries = await take_services(b, 2)
        assert [(each.payload, each.index, each.count) for each in deliveries] == [(b"x", 0, 2), (b"y", 1, 2)]
        assert deliveries[0].recipients == (b.me,)
        assert (deliveries[0].sender, deliveries[0].number) == (a.me, receipt.message.number)


@in_a_loop
async def test_messages_of_both_kinds_come_in_one_stream() -> None:
    async with groups("memory", 2) as (a, b):
        await a.broadcast(b"order")
        await a.send(b"quality", quality=priocast.RELIABLE)
        seen = set()
        async for event in b:
            if isinstance(event, priocast.Delivery):
                seen.add(event.message.payload)
            elif isinstance(event, priocast.ServiceDelivery):
                seen.add(event.payload)
            if len(seen) == 2:
                break
        assert seen == {b"order", b"quality"}


@in_a_loop
async def test_an_urgent_message_of_the_order_comes_between_units() -> None:
    """The application waits between two units; what has come meanwhile is more urgent than the second one."""
    async with groups("memory", 2) as (a, b):
        await a.send([b"0", b"1", b"2"], quality=priocast.RELIABLE, priority=priocast.ROUTINE, to=["b"])
        payloads = []
        async for event in b:
            if isinstance(event, priocast.ServiceDelivery):
                payloads.append(event.payload)
            elif isinstance(event, priocast.Delivery):
                payloads.append(event.message.payload)
            if payloads == [b"0"] and isinstance(event, priocast.ServiceDelivery):
                await a.broadcast(b"urgent", priocast.URGENT)
                await wait_until(lambda: b.status().unconsumed > 0)
            if len(payloads) == 4:
                break
        assert payloads == [b"0", b"urgent", b"1", b"2"]


@in_a_loop
async def test_batches_leave_messages_with_a_quality_to_the_iteration() -> None:
    async with groups("memory", 2) as (a, b):
        await a.send(b"quality", quality=priocast.RELIABLE, to=["b"])
        await a.broadcast(b"order")
        async for batch in b.batches():
            assert batch.payloads == [b"order"]
            break
        assert [each.payload for each in await take_services(b, 1)] == [b"quality"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quality": "reliable"}, "quality must be a quality of service such as"),
        ({"quality": priocast.at_least(4)}, "at-least:4 asks for more than the 2 recipients"),
        ({"quality": priocast.RELIABLE, "to": ["z"]}, "'z' is not a member; the members are a, b"),
        ({"quality": priocast.RELIABLE, "to": []}, "`to` is empty"),
        ({"quality": priocast.RELIABLE, "to": "ab"}, "to must be a list of member names"),
        ({"quality": priocast.RELIABLE, "to": 7}, "to must be a list of member names"),
        ({"quality": priocast.RELIABLE, "deadline": -1}, "the deadline was 1000 ms ago: nothing was sent"),
        ({"quality": priocast.RELIABLE, "deadline": float("nan")}, "deadline must be a finite number"),
        ({"quality": priocast.RELIABLE, "priority": 256}, "256"),
        ({"quality": priocast.delta(20)}, "bounded omission degree"),
        (
            {"quality": priocast.Quality(priocast.QualityKind.AT_LEAST, count=1, names=("b",))},
            "asks for a number of recipients and for named ones: choose one",
        ),
        ({"quality": priocast.Quality(priocast.QualityKind.RELIABLE, count=1)}, "of another quality"),
        ({"quality": priocast.Quality(priocast.QualityKind.DELTA)}, "of another quality"),
        ({"quality": priocast.Quality(priocast.QualityKind.CAUSAL, within_ms=5.0)}, "of another quality"),
        ({"quality": priocast.RELIABLE, "payload": "text"}, "must be a list of bytes, not str"),
        ({"quality": priocast.RELIABLE, "payload": []}, "a message has 0 units"),
        ({"quality": priocast.RELIABLE, "payload": [b"x", "y"]}, "must be bytes, not str"),
    ],
)
@in_a_loop
async def test_bad_input_is_one_clear_error_at_the_call(arguments: dict[str, object], message: str) -> None:
    async with groups("memory", 2) as (a, _):
        with pytest.raises(priocast.InvalidInput, match=message):
            await a.send(arguments.pop("payload", b"x"), **arguments)  # type: ignore[arg-type]
        assert a.status().qualities == []


@in_a_loop
async def test_a_clock_that_is_not_precise_enough_is_one_clear_error() -> None:
    bounds = NetworkProperties(omission_degree=1, delay_ns=1_000_000)
    services = priocast.ServiceOptions(network=bounds, response_ms=10, precision_ms=0.000_001)
    async with groups("memory", 2, services=services) as (_, b):
        await wait_until(lambda: _precision_of(b) is not None)
        with pytest.raises(priocast.InvalidInput, match="needs clocks that are at most 1e-06 ms apart"):
            await b.send(b"x", quality=priocast.delta(100))
        assert b.status().qualities == []


def _precision_of(group: priocast.Group) -> float | None:
    return group.status().clock_precision_ms


@in_a_loop
async def test_messages_are_delivered_by_the_clock_where_the_network_is_bounded() -> None:
    bounds = NetworkProperties(omission_degree=1, delay_ns=20_000_000)
    services = priocast.ServiceOptions(network=bounds, response_ms=1_000, precision_ms=1_000)
    async with groups("memory", 2, services=services) as (a, b):
        receipt = await a.send(b"x", quality=priocast.delta(3_000))
        assert receipt.accepted
        (delivery,) = await take_services(b, 1)
        assert str(delivery.quality) == "delta:3000ms"


@in_a_loop
async def test_a_process_that_did_not_run_in_time_says_that_it_delivers_late() -> None:
    bounds = NetworkProperties(omission_degree=0, delay_ns=20_000_000)
    services = priocast.ServiceOptions(network=bounds, response_ms=5_000, precision_ms=100)
    async with groups("memory", 2, services=services) as (a, b):
        await wait_until(lambda: (_precision_of(b) or 100) < 50)
        assert (await a.send(b"x", quality=priocast.delta(100))).accepted
        time.sleep(0.4)  # noqa: ASYNC251 - the whole process does not run
        (delivery,) = await take_services(b, 1)
        assert delivery.late_ms >= 100
        assert [(each.quality, each.delivered, each.late) for each in b.status().qualities] == [
            ("delta", 1, 1)
        ]


def test_what_the_implementation_does_not_have_cannot_be_declared() -> None:
    services = priocast.ServiceOptions(network=NetworkProperties(network_order=True))
    node = priocast.open_node("a", hub=priocast.MemoryHub(), size=1)
    with pytest.raises(priocast.InvalidOption, match="network_order, which this network does not have"):
        node.join("test", services=services)
    with pytest.raises(priocast.InvalidInput, match=r"services must be priocast.ServiceOptions"):
        node.join("test", services={})  # type: ignore[arg-type]


@in_a_loop
async def test_without_room_a_call_waits_or_is_rejected() -> None:
    services = priocast.ServiceOptions(in_flight_max=1)
    async with groups("memory", 2, services=services) as (a, _):
        first = a.send_nowait(b"1", quality=priocast.ATOMIC)
        with pytest.raises(priocast.Overloaded, match="1 messages of a are being transmitted"):
            a.send_nowait(b"2", quality=priocast.ATOMIC)
        receipts = await asyncio.gather(*(a.send(b"x", quality=priocast.ATOMIC) for _ in range(5)))
        assert [each.message.number for each in receipts] == [2, 3, 4, 5, 6]
        assert first.done() and first.result().accepted


@in_a_loop
async def test_a_call_is_checked_once_unless_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[str] = []
    honest = RequestCheck.recipients

    def recipients(self: RequestCheck, quality: priocast.Quality, *arguments: Any) -> Any:
        checks.append(str(quality))
        return honest(self, quality, *arguments)

    monkeypatch.setattr(RequestCheck, "recipients", recipients)
    services = priocast.ServiceOptions(in_flight_max=1)
    async with groups("memory", 2, services=services) as (a, _):
        first, second = a.send_nowait(b"1", quality=priocast.RELIABLE), a.send(b"2", quality=priocast.ATOMIC)
        await asyncio.gather(first, second)
        assert checks == ["reliable", "atomic", "atomic"], "the view may change while a call waits"


@in_a_loop
async def test_a_lone_message_is_transmitted_at_once_and_those_after_it_together() -> None:
    async with groups("memory", 2) as (a, b):
        reading = asyncio.create_task(take_services(b, 6))
        services = a._driver.member.services
        await a.send(b"0", quality=priocast.RELIABLE, to=["b"])
        calls = [asyncio.ensure_future(a.send(b"x", quality=priocast.RELIABLE, to=["b"])) for _ in range(5)]
        await asyncio.sleep(0)
        assert services.in_flight == 5
        assert services._services is not None
        assert [len(each) for each in services._services._waiting.values()] == [4, 0, 0], "one is on its way"
        receipts = await asyncio.gather(*calls)
        assert [each.message.number for each in receipts] == [2, 3, 4, 5, 6]
        assert [each.number for each in await reading] == [1, 2, 3, 4, 5, 6]


@in_a_loop
async def test_an_application_that_waits_has_a_message_before_it_is_answered() -> None:
    async with groups("memory", 2) as (a, b):

        async def first() -> bool:
            async for event in b:
                if isinstance(event, priocast.ServiceDelivery):
                    return b._driver.member.services.has_frames
            raise AssertionError

        reading = asyncio.create_task(first())
        await wait_until(lambda: b._driver._consumable is not None)
        receipt = await a.send(b"x", quality=priocast.RELIABLE, to=["b"])
        assert await reading, "the response was not transmitted yet"
        assert receipt.answered == ("b",)


@in_a_loop
async def test_urgent_calls_are_served_first() -> None:
    services = priocast.ServiceOptions(in_flight_max=1)
    async with groups("memory", 2, services=services) as (a, _):
        calls = [a.send(b"x", quality=priocast.ATOMIC, priority=each) for each in (1, 1, 1, 200)]
        receipts = await asyncio.gather(*calls)
        assert [each.message.number for each in receipts] == [1, 3, 4, 2]


@in_a_loop
async def test_a_call_that_times_out_says_whether_the_message_was_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    services = priocast.ServiceOptions(in_flight_max=1)
    async with groups("memory", 2, services=services, membership=quick(2, failure_ms=10_000.0)) as (a, b):
        _cut(a, b)
        sent = asyncio.create_task(a.send(b"1", quality=priocast.RELIABLE, deadline=1.3))
        await asyncio.sleep(0)
        with pytest.raises(priocast.DeadlineExceeded, match=r"after 0\.01 s: it was not sent"):
            await a.send(b"2", quality=priocast.RELIABLE, deadline=0.01)
        with caplog.at_level(logging.WARNING), pytest.raises(priocast.DeadlineExceeded, match="it was sent"):
            await sent
        assert "a message with reliable has waited for 1 s: it was sent" in caplog.text


def _cut(one: priocast.Group, other: priocast.Group) -> None:
    hub = one._driver.network.hub  # type: ignore[attr-defined]
    hub.cut(one.me.name, other.me.name)
    hub.cut(other.me.name, one.me.name)


@in_a_loop
async def test_calls_end_with_the_incarnation() -> None:
    async with groups("memory", 3, membership=quick(3)) as (a, b, c):
        reading = asyncio.create_task(take_services(a, 2))
        for other in (b, c):
            _cut(a, other)
        sending = asyncio.create_task(a.send(b"x", quality=priocast.RELIABLE))
        await wait_until(lambda: len(b.view.members) == 2)
        a._driver.network.hub.heal()  # type: ignore[attr-defined]
        with pytest.raises(priocast.GroupClosed, match="a#1 was evicted: what became of its message"):
            await sending
        await wait_until(lambda: len(b.view.members) == 3)
        await wait_until(lambda: a._driver.member.view is not None)
        assert (await a.send(b"y", quality=priocast.RELIABLE)).accepted
        assert [each.payload for each in await reading] == [b"x", b"y"], "it delivers what it sent to itself"


@in_a_loop
async def test_calls_end_when_the_group_is_left() -> None:
    async with groups("memory", 2, leave_seconds=0.0) as (a, b):
        _cut(a, b)
        sending = asyncio.create_task(a.send(b"x", quality=priocast.RELIABLE))
        await asyncio.sleep(0)
    with pytest.raises(priocast.GroupClosed, match="the group was left"):
        await sending
    with pytest.raises(priocast.GroupClosed, match="the group was left"):
        await a.send(b"x", quality=priocast.RELIABLE)


@in_a_loop
async def test_a_receipt_that_nobody_waits_for_is_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with groups("memory", 2, leave_seconds=0.0) as (a, b):
        _cut(a, b)
        receipt = a.send_nowait(b"x", quality=priocast.RELIABLE)
    assert receipt.done()
    del receipt
    gc.collect()
    assert "never retrieved" not in caplog.text


@in_a_loop
async def test_without_a_quorum_a_call_is_rejected() -> None:
    async with groups("memory", 3, membership=quick(3)) as (a, b, c):
        for other in (b, c):
            _cut(a, other)
        await wait_until(lambda: a.status().state == "suspended")
        with pytest.raises(priocast.NoQuorum):
            await a.send(b"x", quality=priocast.at_least(1))
        assert (await a.send(b"x", quality=priocast.UNRELIABLE)).accepted


@pytest.mark.parametrize("network", ["memory", "tcp"])
@in_a_loop
async def test_a_client_has_a_member_send_for_it(network: str) -> None:
    cluster = Cluster(network, "ab")
    joinings = [cluster.join(name) for name in cluster.names]
    way: dict[str, Any] = {"hub": cluster.hub}
    if network == "tcp":
        way = {"peers": [str(cluster.factory.address("a"))]}
    async with entered(*joinings) as members, priocast.open_client("test", client="shop", **way) as client:
        receipt = await client.send_with(priocast.ATOMIC, b"x", priocast.URGENT, to=["b"])
        assert receipt.accepted and receipt.answered == ("b",)
        (delivery,) = await take_services(members[1], 1)
        assert (delivery.payload, delivery.priority) == (b"x", priocast.URGENT)
        assert delivery.sender == receipt.message.sender
        with pytest.raises(priocast.PeerFault, match="asks for more than the 2 recipients"):
            await client.send_with(priocast.at_least(5), b"x")
        for arguments, message in (
            ({"to": []}, "`to` is empty"),
            ({"to": "ab"}, "to must be a list"),
            ({"priority": 256}, "256"),
        ):
            with pytest.raises(priocast.InvalidInput, match=message):
                await client.send_with(priocast.RELIABLE, b"x", **arguments)
    with pytest.raises(priocast.GroupClosed):
        await client.send_with(priocast.RELIABLE, b"x")


@in_a_loop
async def test_a_client_that_reaches_nobody_says_so() -> None:
    async with priocast.open_client("test", client="shop", hub=priocast.MemoryHub()) as client:
        with pytest.raises(priocast.DeadlineExceeded, match="the message may have been sent or not"):
            await client.send_with(priocast.RELIABLE, b"x", timeout_seconds=0.05)
