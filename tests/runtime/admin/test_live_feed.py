"""The feed of a live page: it gathers while somebody watches, and not more often than allowed."""

import asyncio
import time
from itertools import pairwise

from priocast.runtime.admin.live_feed import PERIOD_SECONDS, SHARE_MAX, LiveFeed
from support.waiting import run, wait_until


class CountingSource:
    """Counts what it is asked for; gathering takes `busy_seconds` of processor time."""

    def __init__(self, busy_seconds: float = 0.0) -> None:
        self.started = self.stopped = 0
        self.gathered: list[float] = []
        self._busy_seconds = busy_seconds

    def start(self) -> None:
        self.started += 1

    def stop(self) -> None:
        self.stopped += 1

    def gather(self) -> bytes:
        until = time.thread_time() + self._busy_seconds
        while time.thread_time() < until:
            pass
        self.gathered.append(time.monotonic())
        return b'{"nodes":[]}'


def test_nothing_is_gathered_unless_somebody_watches() -> None:
    async def test() -> None:
        source = CountingSource()
        feed = LiveFeed(source)
        await asyncio.sleep(2 * PERIOD_SECONDS)
        assert not source.gathered
        watching, second = feed.watch(b"{}"), feed.watch(b"{}")
        assert await anext(watching) == b"event: hello\ndata: {}\n\n"
        assert await anext(watching) == b'event: update\ndata: {"nodes":[]}\n\n'
        await anext(second)
        assert feed.watchers == 2
        await watching.aclose()
        assert (source.started, source.stopped) == (1, 0)
        await second.aclose()
        assert (feed.watchers, source.stopped) == (0, 1)
        count = len(source.gathered)
        await asyncio.sleep(3 * PERIOD_SECONDS)
        assert len(source.gathered) == count
        again = feed.watch(b"{}")
        await anext(again)
        await anext(again)
        assert source.started == 2
        await again.aclose()

    run(test)


def test_updates_are_at_least_a_period_apart_however_many_watch() -> None:
    async def test() -> None:
        source = CountingSource()
        feed = LiveFeed(source)
        watching = [feed.watch(b"{}") for _ in range(3)]
        for each in watching:
            await anext(each)
        tasks = [asyncio.create_task(drain(each)) for each in watching]
        await wait_until(lambda: len(source.gathered) >= 5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        gaps = [b - a for a, b in pairwise(source.gathered)]
        assert min(gaps) >= 0.9 * PERIOD_SECONDS

    async def drain(events: object) -> None:
        async for _ in events:  # type: ignore[attr-defined]
            pass

    run(test)


def test_a_source_that_takes_long_is_asked_less_often() -> None:
    busy = 2 * PERIOD_SECONDS * SHARE_MAX

    async def test() -> None:
        source = CountingSource(busy)
        feed = LiveFeed(source)
        watching = feed.watch(b"{}")
        for _ in range(4):
            await anext(watching)
        await watching.aclose()
        gaps = [b - a for a, b in pairwise(source.gathered)]
        assert min(gaps) >= 0.9 * busy / SHARE_MAX

    run(test)


def test_a_process_that_is_not_run_in_time_is_asked_less_often() -> None:
    async def keep_busy() -> None:
        """Let every timer be late."""
        while True:
            time.sleep(PERIOD_SECONDS)  # noqa: ASYNC251 - stands for a machine that does not run the process
            await asyncio.sleep(0)

    async def test() -> None:
        source = CountingSource()
        feed = LiveFeed(source)
        watching = feed.watch(b"{}")
        busy = asyncio.create_task(keep_busy())
        for _ in range(5):
            await anext(watching)
        busy.cancel()
        await watching.aclose()
        gaps = [b - a for a, b in pairwise(source.gathered)]
        assert sum(gaps) / len(gaps) > 2.5 * PERIOD_SECONDS

    run(test)
