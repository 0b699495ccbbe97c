"""The feed of a live page: gathers updates while somebody watches, and sends each to all who do.

Gathering takes at most one hundredth of a processor: where an update takes longer than a millisecond, for
instance because thousands of messages wait and are counted, the next one comes later. On a machine that is
too busy to run the process in time, which a late timer shows, it comes later still: there a hundredth of a
processor may be a large part of what the process gets. A watcher that does not keep up misses updates;
nothing is kept for it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Protocol

PERIOD_SECONDS = 0.1
"""At most ten updates a second."""
SHARE_MAX = 0.01
LATENESS_FACTOR = 20
"""The next update comes after at least this many times by how much the timer of the last one was late."""
WATCHERS_MAX = 8


class LiveSource(Protocol):
    """What a page shows: `gather` returns an update in JSON; `start` and `stop` tell when one is needed."""

    def start(self) -> None: ...
    def gather(self) -> bytes: ...
    def stop(self) -> None: ...


class LiveFeed:
    """Updates of one source, for all its watchers."""

    def __init__(self, source: LiveSource) -> None:
        self._source = source
        self._latest: asyncio.Future[bytes] | None = None
        self._gathering: asyncio.Task[None] | None = None
        self.watchers = 0

    @property
    def is_full(self) -> bool:
        """Whether there are as many watchers as there may be."""
        return self.watchers >= WATCHERS_MAX

    async def watch(self, greeting: bytes) -> AsyncGenerator[bytes, None]:
        """Server-sent events: a greeting, then updates until the watcher goes."""
        self.watchers += 1
        try:
            yield _event("hello", greeting)
            if self._gathering is None:
                self._latest = asyncio.get_running_loop().create_future()
                self._gathering = asyncio.create_task(self._gather())
            while self._latest is not None:
                yield _event("update", await asyncio.shield(self._latest))
        finally:
            self.watchers -= 1
            if not self.watchers:
                self.close()

    def close(self) -> None:
        """Stop gathering."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = self._latest = None
            self._source.stop()

    async def _gather(self) -> None:
        loop = asyncio.get_running_loop()
        late = 0.0
        self._source.start()
        while True:
            began = time.thread_time()
            update = self._source.gather()
            took = time.thread_time() - began
            assert self._latest is not None
            latest, self._latest = self._latest, loop.create_future()
            latest.set_result(update)
            due = loop.time() + max(PERIOD_SECONDS, took / SHARE_MAX, LATENESS_FACTOR * late)
            await asyncio.sleep(due - loop.time())
            late = loop.time() - due


def _event(name: str, data: bytes) -> bytes:
    """A server-sent event. JSON has no line breaks outside of its texts, and escapes those within."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
