"""Lines in and lines out without ever holding up the event loop.

Standard input may be a terminal, a pipe, a file or nothing, and not all of them can be waited for in an event
loop. Standard output may be a pipe whose reader has stopped. A member that waits for either in its event loop
gives no sign of life, and is put out of its group. So one thread reads, another writes, and little is kept in
between.
"""

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from priocast.core.message import PAYLOAD_BYTES_MAX

_READ_BYTES = 64 * 1024
_LINE_BYTES_MAX = 2 * PAYLOAD_BYTES_MAX
_LINES_READ_MAX = 64
_LINES_UNWRITTEN_MAX = 1024


class LineReader:
    """The lines of a file descriptor. One that is too long is cut, and its rest is a line of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | None] = deque()
        self._news = asyncio.Event()
        self._room = threading.Semaphore(_LINES_READ_MAX)
        threading.Thread(target=self._read, name="lines in", daemon=True).start()

    async def lines(self, ending: asyncio.Event) -> AsyncIterator[str]:
        """The lines until there are no more; once it is to end, only those that have been read."""
        while True:
            while not self._lines and not ending.is_set():
                await self._wait_news(ending)
            line = self._lines.popleft() if self._lines else None
            if line is None:
                return
            self._room.release()
            yield line.decode(errors="replace")

    async def _wait_news(self, ending: asyncio.Event) -> None:
        self._news.clear()
        waits = [asyncio.create_task(self._news.wait()), asyncio.create_task(ending.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _read(self) -> None:
        begun = b""
        while data := self._read_some():
            *whole, begun = (begun + data).split(b"\n")
            if len(begun) > _LINE_BYTES_MAX:
                whole, begun = [*whole, begun], b""
            for line in whole:
                self._hand_over(line)
        if begun:
            self._hand_over(begun)
        self._hand_over(None)

    def _read_some(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except OSError:  # closed, or a terminal that has gone away
            return b""

    def _hand_over(self, line: bytes | None) -> None:
        self._room.acquire()
        self._lines.append(line)
        with suppress(RuntimeError):  # the event loop has ended, and nobody asks for lines any more
            self._loop.call_soon_threadsafe(self._news.set)


class LineWriter:
    """Writes lines to a file descriptor; `on_broken` is called, once, when nobody reads them any more."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._unwritten: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_LINES_UNWRITTEN_MAX)
        self._thread = threading.Thread(target=self._write, name="lines out", daemon=True)
        self._thread.start()

    async def write(self, line: str) -> None:
        """Write a line soon; wait if many are waiting already."""
        await self._room.acquire()
        self._unwritten.put(line.encode() + b"\n")

    async def close(self, timeout_seconds: float) -> None:
        """Wait until all is written, if somebody reads it."""
        self._unwritten.put(None)
        await asyncio.to_thread(self._thread.join, timeout_seconds)

    def _write(self) -> None:
        broken = False
        while (line := self._unwritten.get()) is not None:
            try:
                rest = memoryview(line)
                while rest and not broken:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                broken = True
                self._tell(self._on_broken)
            self._tell(self._room.release)

    def _tell(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the event loop has ended, and did not wait for the rest
            self._loop.call_soon_threadsafe(call)
