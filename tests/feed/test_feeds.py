"""Feeds of real groups: readers get every message once, at its position, from whichever feed is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import priocast
from priocast.core.errors import InvalidOption, LogFault, UnavailableFeed
from priocast.core.events import Delivery, Evicted, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.feed.feed import Feed, open_feed
from priocast.feed.feed_reader import FeedReader
from priocast.network.keys import make_member_certificate
from priocast.network.security import TlsSecurity
from support.groups import Cluster, entered, quick
from support.waiting import run, wait_until

A = ProcessId("a", 1)


def view(number: int, position: int, founded: bool = False) -> ViewChange:
    return ViewChange(View(number, (A,)), position, ViewReason(founded=founded))


def delivery(position: int) -> Delivery:
    return Delivery(Message(A, 96, position, 96, b"%d" % position), position)


def read_all(feeds: list[Feed], first: int = 0, tls: TlsSecurity | None = None) -> list[bytes]:
    """What a reader gets from these feeds."""
    with FeedReader("test", [str(feed.address) for feed in feeds], tls) as reader:
        _, end = reader.widest_range()
        return [message.payload for part in reader.read(first, end) for message in part]


@asynccontextmanager
async def feeding(
    cluster: Cluster, directory: Path
) -> AsyncIterator[tuple[list[priocast.Group], list[Feed]]]:
    """A group in which every member has a feed."""
    async with AsyncExitStack() as stack:
        joinings = [
            cluster.join(name, delivery="safe", membership=quick(len(cluster.names)))
            for name in cluster.names
        ]
        groups = await stack.enter_async_context(entered(*joinings))
        feeds = [
            await stack.enter_async_context(open_feed("test", member=name, directory=directory / name))
            for name in cluster.names
        ]
        tasks = [asyncio.create_task(_feed(*each)) for each in zip(groups, feeds, strict=True)]
        try:
            yield groups, feeds
        finally:
            for task in tasks:
                task.cancel()


async def _feed(group: priocast.Group, feed: Feed) -> None:
    async for event in group:
        feed.take(event)


def test_all_feeds_have_the_same_messages_at_the_same_positions(tmp_path: Path) -> None:
    async def test() -> None:
        async with feeding(Cluster("memory", "abc"), tmp_path) as (groups, feeds):
            for number in range(30):
                await groups[number % 3].broadcast(b"%d" % number, priority=number)
            await wait_until(lambda: all(feed.range == (0, 30) for feed in feeds))
            each = [await asyncio.to_thread(read_all, [feed]) for feed in feeds]
            assert each[0] == each[1] == each[2]
            assert sorted(each[0]) == sorted(b"%d" % number for number in range(30))

    run(test)


def take_all(feed: Feed, count: int) -> None:
    feed.take(view(1, 0, founded=True))
    for position in range(count):
        feed.take(delivery(position))


def test_a_reader_turns_to_another_feed_when_one_fails(tmp_path: Path) -> None:
    async def test() -> None:
        opening = [open_feed("test", member=name, directory=tmp_path / name) for name in "ab"]
        feeds = [await each.__aenter__() for each in opening]
        for feed in feeds:
            take_all(feed, 20)
            await feed.written()
        with FeedReader("test", [str(feed.address) for feed in feeds]) as reader:
            assert await asyncio.to_thread(reader.range) == (0, 20)
            await opening[0].__aexit__(None, None, None)
            parts = await asyncio.to_thread(lambda: list(reader.read(0, 20)))
            assert [message.position for part in parts for message in part] == list(range(20))
            await opening[1].__aexit__(None, None, None)
            with pytest.raises(UnavailableFeed, match="no feed of group 'test' answers"):
                await asyncio.to_thread(reader.range)

    run(test)


def test_a_member_that_was_away_fetches_what_it_missed_from_other_feeds(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_feed("test", member="a", directory=tmp_path / "a") as whole:
            take_all(whole, 50)
            await whole.written()
            async with open_feed(
                "test", member="b", directory=tmp_path / "b", others=[str(whole.address)]
            ) as other:
                other.take(view(1, 0, founded=True))
                other.take(delivery(0))
                other.take(Evicted(ViewReason()))
                other.take(view(5, 48))
                other.take(delivery(48))
                await other.written()
                assert other.range == (0, 49)
                assert await asyncio.to_thread(read_all, [other]) == [b"%d" % number for number in range(49)]

    run(test)


def test_without_another_feed_it_begins_anew_where_it_joined(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_feed("test", member="b", directory=tmp_path) as feed:
            feed.take(view(1, 0, founded=True))
            feed.take(delivery(0))
            feed.take(Evicted(ViewReason()))
            feed.take(view(5, 48))
            feed.take(delivery(49))  # 48 is not for this member
            await feed.written()
            assert feed.range == (48, 50)
            with pytest.raises(priocast.TrimmedPosition, match="feeds begin at 48"):
                await asyncio.to_thread(read_all, [feed])
            assert await asyncio.to_thread(read_all, [feed], 48) == [b"49"]

    run(test)


def test_a_restarted_feed_goes_on_and_a_new_group_is_rejected(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_feed("test", member="a", directory=tmp_path) as feed:
            feed.take(view(1, 0, founded=True))
            feed.take(delivery(0))
        async with open_feed("test", member="a", directory=tmp_path) as feed:
            assert feed.range == (0, 1)
            feed.take(view(2, 1))
            feed.take(delivery(1))
            await feed.written()
            assert await asyncio.to_thread(read_all, [feed]) == [b"0", b"1"]
        async with open_feed("test", member="a", directory=tmp_path) as feed:
            with pytest.raises(LogFault, match="founded again"):
                feed.take(view(1, 0, founded=True))

    run(test)


def test_readers_need_a_certificate_of_the_group(tmp_path: Path) -> None:
    async def test() -> None:
        cluster = Cluster("tls", "ab")
        mine = cluster.factory.certificate("a")
        (tmp_path / "keys").mkdir()
        theirs = make_member_certificate(tmp_path / "keys", cluster.factory.authority, "b", ["other"])
        async with open_feed("test", member="a", directory=tmp_path / "feed", tls=mine) as feed:
            feed.take(view(1, 0, founded=True))
            feed.take(delivery(0))
            await feed.written()
            reader = cluster.factory.certificate("b")
            assert await asyncio.to_thread(read_all, [feed], 0, reader) == [b"0"]
            with pytest.raises(UnavailableFeed, match="does not include group 'test'"):
                await asyncio.to_thread(read_all, [feed], 0, theirs)
            with pytest.raises(UnavailableFeed):
                await asyncio.to_thread(read_all, [feed], 0, None)

    run(test)


def test_what_is_not_a_question_ends_the_connection_and_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_feed("test", member="a", directory=tmp_path) as feed:
            for nonsense in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x02\xc1\xc1", b"GET / HTTP/1.1\r\n\r\n"):
                reader, writer = await asyncio.open_connection(*feed.address)
                writer.write(nonsense)
                assert await reader.read() == b""
                writer.close()
            with (
                FeedReader("other", [str(feed.address)]) as other,
                pytest.raises(UnavailableFeed, match="a feed of group 'test', not of 'other'"),
            ):
                await asyncio.to_thread(other.range)

    run(test)


def test_an_address_that_others_reach_needs_tls(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="which other machines can reach"):
        open_feed("test", member="a", directory=tmp_path, address="0.0.0.0:9501")
