"""Reading and writing lines never blocks the event loop, whatever the other end does."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from priocast.operations.line_io import LINE_BYTES_MAX, LineReader, LineWriter
from support.waiting import run, wait_until


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe. The reader thread ends before its descriptor number can be reused."""
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        with suppress(OSError):
            os.close(writing)
        for thread in threading.enumerate():
            if thread.name == "line reader":
                thread.join(timeout=2)
        with suppress(OSError):
            os.close(reading)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def all_lines(descriptor: int, ending: asyncio.Event | None = None) -> list[str]:
    return [line async for line in LineReader(descriptor, fail_on_overlong).lines(ending or asyncio.Event())]


def fail_on_overlong(size: int) -> None:
    raise AssertionError(f"a line of {size} bytes was refused")


def test_lines_of_a_pipe_a_file_and_dev_null(tmp_path: Path) -> None:
    async def test() -> None:
        with pipe() as (reading, writing):
            os.write(writing, b"one\n\ntw")
            os.write(writing, "o é\nlast without end".encode())
            os.close(writing)
            assert await all_lines(reading) == ["one", "", "two é", "last without end"]
        path = tmp_path / "lines"
        path.write_text("".join(f"{number}\n" for number in range(500)))
        with opened(path) as descriptor:
            assert await all_lines(descriptor) == [str(number) for number in range(500)]
        with opened(Path(os.devnull)) as descriptor:
            assert await all_lines(descriptor) == []

    run(test)


def test_after_ending_only_lines_already_read_are_returned() -> None:
    async def test() -> None:
        with pipe() as (reading, writing):
            ending = asyncio.Event()
            reader = LineReader(reading, fail_on_overlong)
            lines = reader.lines(ending)
            os.write(writing, b"one\ntwo\n")
            assert await anext(lines) == "one"
            await wait_until(lambda: len(reader._lines) == 1)
            ending.set()
            assert [line async for line in lines] == ["two"]
            os.close(writing)

    run(test)


def test_spurious_wakeup_is_not_the_end() -> None:
    async def test() -> None:
        with pipe() as (reading, writing):
            reader = LineReader(reading, fail_on_overlong)
            following = asyncio.create_task(_first(reader))
            await asyncio.sleep(0)
            reader._line_added.set()
            await asyncio.wait([following], timeout=0.05)
            os.write(writing, b"one\n")
            assert await following == "one"
            os.close(writing)

    run(test)


async def _first(reader: LineReader) -> str:
    return await anext(reader.lines(asyncio.Event()))


@pytest.mark.parametrize("end", [b"\n", b""], ids=["line", "last line"])
@pytest.mark.parametrize("size", [LINE_BYTES_MAX, LINE_BYTES_MAX + 1, LINE_BYTES_MAX + 65_536, 5_000_000])
def test_line_over_the_limit_is_refused_whole(size: int, end: bytes) -> None:
    async def test() -> None:
        with pipe() as (reading, writing):
            refused: list[int] = []
            lines = LineReader(reading, refused.append).lines(asyncio.Event())
            sent = b"before\n" + b"x" * size + end + (b"after\n" if end else b"")
            sending = asyncio.create_task(asyncio.to_thread(_write_and_close, writing, sent))
            found = [line async for line in lines]
            await sending
            kept = ["x" * size] if size <= LINE_BYTES_MAX else []
            assert found == ["before", *kept, *(["after"] if end else [])]
            assert refused == ([] if kept else [size])

    run(test)


def _write_and_close(descriptor: int, data: bytes) -> None:
    _write_all(descriptor, data)
    os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def test_stopped_reader_blocks_writers_but_not_the_event_loop() -> None:
    async def test() -> None:
        with pipe() as (reading, writing):
            writer = LineWriter(writing, lambda: None)

            async def write_much() -> None:
                for _ in range(3000):
                    await writer.write("x" * 100)

            writing_much = asyncio.create_task(write_much())
            await asyncio.wait([writing_much], timeout=0.2)
            assert not writing_much.done()
            taken = 0
            while taken < 3000 * 101:
                taken += len(await asyncio.to_thread(os.read, reading, 1 << 20))
            await writing_much
            await writer.close(5)
            assert (writer.lost, writer.error) == (0, None)

    run(test)


def test_lines_that_nobody_reads_are_counted() -> None:
    async def test() -> None:
        with pipe() as (_, writing):
            writer = LineWriter(writing, lambda: None)
            for _ in range(20):
                await writer.write("x" * 10_000)
            await writer.close(0.1)
            assert 10 <= writer.lost <= 20
            assert writer.error is None

    run(test)


def test_broken_pipe_is_reported_once() -> None:
    async def test() -> None:
        with pipe() as (reading, writing):
            calls: list[bool] = []
            writer = LineWriter(writing, lambda: calls.append(True))
            os.close(reading)
            for _ in range(3):
                await writer.write("x")
            await wait_until(lambda: bool(calls))
            await writer.close(5)
            assert calls == [True]
            assert isinstance(writer.error, BrokenPipeError)
            assert writer.lost == 3

    run(test)
