"""A real group with feeds, in a thread of its own: Spark calls block."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import priocast
from priocast.testing.addresses import free_addresses

GROUP = "tickets"
_PATIENCE_SECONDS = 120.0


class FeedingGroup:
    """A group of two members over TCP, each with a feed below `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._stack = AsyncExitStack()
        self._addresses = [str(address) for address in free_addresses(2)]
        self._tasks: list[asyncio.Task[None]] = []
        self.groups: list[priocast.Group] = []
        self.feeds: list[priocast.Feed] = []

    def __enter__(self) -> "FeedingGroup":
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(_PATIENCE_SECONDS)

    @property
    def source(self) -> dict[str, str]:
        """The options of a source that reads the feeds."""
        return {"group": GROUP, "feeds": ",".join(str(feed.address) for feed in self.feeds)}

    @property
    def sink(self) -> dict[str, str]:
        """The options of a sink that broadcasts to the group."""
        return {"group": GROUP, "peers": ",".join(self._addresses), "name": "spark"}

    def broadcast(self, first: int, end: int) -> None:
        """Broadcast numbers, and wait until both feeds have them."""
        self.run(self._broadcast([b"%d" % number for number in range(first, end)]))

    def payloads(self) -> list[bytes]:
        """What the first feed has, in order."""
        with priocast.FeedReader(GROUP, [str(self.feeds[0].address)]) as reader:
            return [message.payload for part in reader.read(*reader.range()) for message in part]

    async def _start(self) -> None:
        joinings = [
            priocast.join(
                GROUP,
                member=name,
                listen=self._addresses[index],
                peers=[self._addresses[1 - index]],
                delivery="safe",
            )
            for index, name in enumerate("ab")
        ]
        self.groups = list(await asyncio.gather(*map(self._stack.enter_async_context, joinings)))
        for name, group in zip("ab", self.groups, strict=True):
            opened = priocast.open_feed(GROUP, member=name, directory=self.directory / name)
            feed = await self._stack.enter_async_context(opened)
            self.feeds.append(feed)
            self._tasks.append(asyncio.create_task(_feed(group, feed)))

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def _broadcast(self, payloads: list[bytes]) -> None:
        before = self.feeds[0].range[1]
        await self.groups[0].broadcast_many(payloads)
        while min(feed.range[1] for feed in self.feeds) < before + len(payloads):
            await asyncio.sleep(0.01)


async def _feed(group: priocast.Group, feed: priocast.Feed) -> None:
    async for event in group:
        feed.take(event)
