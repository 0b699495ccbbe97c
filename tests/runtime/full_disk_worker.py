"""Members on a full disk, for `test_full_disk.py`: give the name of a scenario and a directory.

A limit on the size of files stands for the full disk, so that no privileges are needed. It holds for a whole
process, so each scenario runs in its own.
"""

import asyncio
import resource
import sys
from pathlib import Path
from typing import Any

import priocast
from priocast.runtime import incarnations
from priocast.runtime.node import WithNode
from priocast.trace import writer
from support.groups import Reader, entered, quick, reading
from support.waiting import wait_until

_, HARD = resource.getrlimit(resource.RLIMIT_FSIZE)


def fill_disk() -> None:
    """Let every write to a file fail after the first byte."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, HARD))


def make_room() -> None:
    """Let files grow again."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (HARD, HARD))


def joining(hub: priocast.MemoryHub, name: str, directory: Path, **more: Any) -> WithNode[priocast.Group]:
    return priocast.join(
        "tickets",
        member=name,
        hub=hub,
        size=3,
        membership=quick(3),
        trace=directory / "run",
        state_directory=directory / "state",
        **more,
    )


async def broadcast(group: priocast.Group, readers: list[Reader], *payloads: bytes) -> None:
    """Broadcast messages, and wait until all readers have delivered them."""
    for payload in payloads:
        await group.broadcast(payload)
    for reader in readers:
        await reader.wait_payloads(*payloads)


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


async def recovers(directory: Path) -> None:
    """The disk is full for a while, and the trace is complete in the end."""
    hub = priocast.MemoryHub()
    members = (joining(hub, name, directory, trace_journal=True) for name in "abc")
    async with entered(*members) as (a, b, c), reading(a, b, c) as readers:
        await broadcast(a, readers, *numbers(0, 20))
        assert a.status().storage_problems == []
        fill_disk()
        await broadcast(a, readers, *numbers(20, 100))
        await wait_until(lambda: a.status().storage_problems)
        (problem,) = a.status().storage_problems
        assert "is not written now: File too large" in problem, problem
        make_room()
        await broadcast(a, readers, *numbers(100, 200))
        await wait_until(lambda: not a.status().storage_problems)
        assert a.status().trace_rows_lost == 0


async def record_ends(directory: Path) -> None:
    """The disk is full for too long: the records end early, and the members go on."""
    hub = priocast.MemoryHub()
    leaving = None
    try:
        async with (
            entered(*(joining(hub, name, directory) for name in "abc")) as (a, b, c),
            reading(a, b, c) as readers,
        ):
            await broadcast(a, readers, *numbers(0, 20))
            fill_disk()
            count = 20
            while not a.status().trace_rows_lost:
                await broadcast(a, readers, *numbers(count, count + 10))
                count += 10
            assert "ended early" in a.status().storage_problems[0]
            make_room()
            await broadcast(a, readers, b"after the end of the record")
    except OSError as error:
        leaving = error
    assert leaving is not None, "the members leave, and say that rows are lost"


async def rejoins(directory: Path) -> None:
    """The disk is full when an evicted member needs a new incarnation number, which is stored later."""
    hub = priocast.MemoryHub()
    stored = directory / "state" / "tickets.c.incarnation"
    async with (
        entered(*(joining(hub, name, directory, trace_journal=True) for name in "abc")) as (a, b, c),
        reading(a, b, c) as (reader, _, _),
    ):
        await reader.wait_members("abc")
        fill_disk()
        before = c.me.incarnation
        for other in "ab":
            hub.cut(other, "c")
            hub.cut("c", other)
        await reader.wait_members("ab")
        hub.heal()
        await reader.wait_members("abc")
        assert c.me.incarnation > before
        problems = c.status().storage_problems
        assert f"incarnation {c.me.incarnation} is not stored in {stored}" in problems[0], problems
        assert stored.read_text() == f"{before}\n"
        make_room()
        await wait_until(lambda: stored.read_text() == f"{c.me.incarnation}\n")
        await wait_until(lambda: not c.status().storage_problems)


if __name__ == "__main__":
    # Segments of a few rows, so that a disk is soon found to be full.
    writer._CHUNK_ROWS = writer._SEGMENT_CHUNKS = 4
    writer._CHUNKS_WAITING_MAX = 16 if sys.argv[1] == "record_ends" else 512
    writer._RETRY_SECONDS = incarnations._RETRY_SECONDS = 0.05
    asyncio.run(globals()[sys.argv[1]](Path(sys.argv[2])))
