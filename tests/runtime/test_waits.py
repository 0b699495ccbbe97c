"""Silent waits speak: a wait that lasts longer than a second logs its reason once, and every wait ends."""

import asyncio

import pytest

import priocast
from support.groups import Cluster, entered, groups, quick
from support.waiting import run, wait_until


def logged(caplog: pytest.LogCaptureFixture, beginning: str) -> list[str]:
    return [message for message in caplog.messages if message.startswith(beginning)]


def test_a_broadcast_without_room_says_what_it_waits_for_and_has_a_default_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=4, queue_max=16, submit_max=16)
        async with groups("memory", 2, options=options, broadcast_seconds=2.0, leave_seconds=0.1) as members:
            with pytest.raises(
                priocast.DeadlineExceeded, match=r"timed out after 2 s: .* were not broadcast"
            ):
                await members[0].broadcast_many([b"x"] * 1000)
        (record,) = logged(caplog, "a broadcast of priority 96 has waited for room for 1 s")
        assert "the slowest member has not consumed earlier messages" in record

    run(test)


def test_a_short_wait_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=4, queue_max=16, submit_max=16)
        async with groups("memory", 2, options=options, leave_seconds=0.1) as members:
            with pytest.raises(priocast.DeadlineExceeded):
                await members[0].broadcast_many([b"x"] * 1000, timeout_seconds=0.01)
            await asyncio.sleep(1.2)
            assert logged(caplog, "a broadcast") == []

    run(test)


def test_forming_says_who_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        cluster = Cluster("tcp", "ab")
        with pytest.raises(priocast.DeadlineExceeded, match="missing"):
            await cluster.join("a", start_seconds=1.5).__aenter__()
        (record,) = logged(caplog, "a has waited for a view of group 'test' for 1 s")
        assert "heard: nobody; missing: 127." in record

    run(test)


def test_leaving_with_a_backlog_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        cluster, options = Cluster("memory", "ab"), priocast.OrderingOptions(window=4)
        joinings = [
            cluster.join(name, membership=quick(2), options=options, leave_seconds=1.5) for name in "ab"
        ]
        async with entered(*joinings) as members:
            await members[0].broadcast_many([b"x"] * 100)
        records = logged(caplog, "a has waited to leave for 1 s")
        assert len(records) == 1 and "messages wait at a for a position" in records[0]

    run(test)


def test_a_client_that_reaches_nobody_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        cluster = Cluster("tcp", "ab")
        peers = [str(cluster.factory.address("a"))]
        async with priocast.open_client("test", client="shop", peers=peers) as client:
            sending = asyncio.create_task(client.send(b"x", timeout_seconds=5))
            await wait_until(lambda: caplog.messages)
            sending.cancel()
        expected = f"client shop has waited for a reply for 1 s: no member could be reached: {peers[0]}"
        assert [message[: len(expected)] for message in caplog.messages] == [expected]

    run(test)


def test_a_message_to_nobody_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with groups("memory", 2) as members:
            for _ in range(3):
                await members[0].broadcast(b"x", to=["nobody"])
            members[0].broadcast_nowait(b"x", to=["nobody"])
            await members[0].broadcast(b"x", to=["nobody", "b"])
        expected = "a message to nobody is delivered by nobody: the members are a, b"
        assert logged(caplog, "a message") == [expected]

    run(test)
