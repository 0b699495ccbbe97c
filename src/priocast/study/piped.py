"""What a member's process and its parent say to each other, in lines of JSON.

The process reads its task from the first line of standard input and reports progress on standard output. Work
begins with the second line, when all have joined, and the member leaves when standard input ends: the others
may need it until all are done.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from priocast.core.errors import PriocastError
from priocast.runtime import event_loop
from priocast.runtime.gc_freeze import freeze_gc


class MemberTask(msgspec.Struct, frozen=True, kw_only=True):
    """What one member is to do, to begin with: which one it is, and where it finds the others."""

    member: str
    listen: str
    peers: list[str]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a member has come. The last one has the digest of all that it delivered, in order."""

    delivered: int
    digest: str = ""


TaskT = TypeVar("TaskT", bound=MemberTask)


def say(progress: Progress) -> None:
    """Tell the parent."""
    sys.stdout.buffer.write(msgspec.json.encode(progress) + b"\n")
    sys.stdout.buffer.flush()


async def joined() -> None:
    """Tell the parent that this member is in the group, and wait for the beginning."""
    freeze_gc()
    say(Progress(delivered=0))
    await line_of_input()


async def line_of_input() -> None:
    """Wait for the parent."""
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)


def do_task(kind: type[TaskT], work: Callable[[TaskT], Awaitable[None]]) -> None:
    """Read the task, do it, and say in one line what went wrong if something did."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=kind)

    async def run() -> None:
        await work(task)

    try:
        event_loop.run(run())
    except* PriocastError as errors:
        sys.exit(f"{task.member}: {errors.exceptions[0]}")
