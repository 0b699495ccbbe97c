"""A member as a worker process, from within: it reads its task and reports in lines of JSON.

The first line of standard input is the task. What further lines mean is up to the worker; when standard input
ends, it leaves. Its parent's side is `process_group`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypedDict, TypeVar

import msgspec

from priocast.core.errors import PriocastError
from priocast.runtime import event_loop
from priocast.runtime.gc_freeze import freeze_gc


class MemberAddresses(TypedDict):
    """The name and the address of a member, and the addresses of the others: the fields of every task."""

    member: str
    listen: str
    peers: list[str]


class MemberTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of one member; its fields are those of `MemberAddresses`."""

    member: str
    listen: str
    peers: list[str]


class MemberProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages a member has delivered. The last report has the digest of all, in order."""

    delivered: int
    digest: str = ""


TaskT = TypeVar("TaskT", bound=MemberTask)


def report(message: msgspec.Struct) -> None:
    """Send a report to the parent."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


async def wait_start() -> None:
    """Report that this member has joined, and wait until all members have."""
    freeze_gc()
    report(MemberProgress(delivered=0))
    await read_line()


async def read_line() -> bytes:
    """Wait for a line from the parent; empty at the end of standard input."""
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)


def run_worker(task_type: type[TaskT], work: Callable[[TaskT], Awaitable[None]]) -> None:
    """Read the task and carry it out; an error of Priocast ends the process with one line."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=task_type)

    async def run() -> None:
        await work(task)

    try:
        event_loop.run(run())
    except* PriocastError as errors:
        sys.exit(f"{task.member}: {errors.exceptions[0]}")
