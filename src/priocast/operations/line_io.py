"""Reads and writes lines without blocking the event loop.

Standard input may be a terminal, a pipe, a file or closed, and an event loop cannot wait for all of them.
Standard output may be a pipe whose reader has stopped. A member that blocks on either in its event loop sends
no heartbeats and is evicted from its group. So one thread reads, another one writes, with short queues
between them and the event loop.
"""

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple

from priocast.core.message import PAYLOAD_BYTES_MAX

_READ_BYTES = 64 * 1024
LINE_BYTES_MAX = 2 * PAYLOAD_BYTES_MAX
_LINES_READ_MAX = 64
_LINES_UNWRITTEN_MAX = 1024


class _OverlongLine(NamedTuple):
    """Stands for a line that is not kept, because it is too long."""

    size: int


class LineReader:
    """Reads the lines of a file descriptor.

    A line of more than `LINE_BYTES_MAX` bytes is rejected whole: `on_overlong` is called with its size.
    """

    def __init__(self, descriptor: int, on_overlong: Callable[[int], None]) -> None:
        self._descriptor = descriptor
        self._on_overlong = on_overlong
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | _OverlongLine | None] = deque()
        self._line_added = asyncio.Event()
        self._room = threading.Semaphore(_LINES_READ_MAX)
        threading.Thread(target=self._read, name="line reader", daemon=True).start()

    async def lines(self, ending: asyncio.Event) -> AsyncIterator[str]:
        """The lines up to end of file; once `ending` is set, only those that were read before."""
        while True:
            while not self._lines and not ending.is_set():
                await self._wait_for_line(ending)
            line = self._lines.popleft() if self._lines else None
            if line is None:
                return
            self._room.release()
            if isinstance(line, _OverlongLine):
                self._on_overlong(line.size)
            else:
                yield line.decode(errors="replace")

    async def _wait_for_line(self, ending: asyncio.Event) -> None:
        self._line_added.clear()
        waits = [asyncio.create_task(self._line_added.wait()), asyncio.create_task(ending.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _read(self) -> None:
        partial, dropped = b"", 0  # the begin of the current line, and how much of it is not kept
        while data := self._read_some():
            *ends, begin = data.split(b"\n")
            for end in ends:
                self._enqueue_line(partial, end, dropped)
                partial, dropped = b"", 0
            partial += begin
            if dropped or len(partial) > LINE_BYTES_MAX:
                partial, dropped = b"", dropped + len(partial)
        if partial or dropped:
            self._enqueue_line(partial, b"", dropped)
        self._enqueue(None)

    def _enqueue_line(self, begin: bytes, end: bytes, dropped: int) -> None:
        size = dropped + len(begin) + len(end)
        self._enqueue(begin + end if size <= LINE_BYTES_MAX else _OverlongLine(size))

    def _read_some(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except OSError:  # closed, or the terminal is gone
            return b""

    def _enqueue(self, line: bytes | _OverlongLine | None) -> None:
        self._room.acquire()
        self._lines.append(line)
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._line_added.set)


class LineWriter:
    """Writes lines to a file descriptor. `on_broken` is called once, when writing fails.

    `lost` counts the lines that were not written; `error` is why, unless they are just not written yet.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self.lost = 0
        self.error: OSError | None = None
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._unwritten: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_LINES_UNWRITTEN_MAX)
        self._thread = threading.Thread(target=self._write, name="line writer", daemon=True)
        self._thread.start()

    async def write(self, line: str) -> None:
        """Queue a line for writing; wait while the queue is full."""
        await self._room.acquire()
        self.lost += 1
        self._unwritten.put(line.encode() + b"\n")

    async def close(self, timeout_seconds: float) -> None:
        """Wait until all lines are written, or until the timeout."""
        self._unwritten.put(None)
        await asyncio.to_thread(self._thread.join, timeout_seconds)
        await asyncio.sleep(0)  # what the thread counted last

    def _write(self) -> None:
        while (line := self._unwritten.get()) is not None:
            try:
                rest = memoryview(line)
                while rest and self.error is None:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                self.error = error
                self._call_in_loop(self._on_broken)
            self._call_in_loop(self._line_done if self.error is None else self._room.release)

    def _line_done(self) -> None:
        self.lost -= 1
        self._room.release()

    def _call_in_loop(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(call)
