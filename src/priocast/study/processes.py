"""Starts the members of a run as real processes, follows them, and ends every one of them."""

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from secrets import randbelow
from typing import Generic, NamedTuple, TypeVar

import msgspec

from priocast.core.errors import GroupClosed
from priocast.network.address import Address
from priocast.study.piped import MemberTask, Progress

_END_SECONDS = 10.0
_LINE_BYTES_MAX = 16 * 1024 * 1024

ProgressT = TypeVar("ProgressT", bound=Progress)


class Program(NamedTuple, Generic[ProgressT]):
    """What a member's process runs, and how it reports."""

    module: str
    progress: type[ProgressT]


def free_addresses(count: int) -> list[Address]:
    """Addresses of this machine that nobody uses, nor will when they are listened on at last.

    Every call has a host of the loopback range for itself: a port that is free now may be any program's in a
    second, but only of the hosts that it uses, and those who dial do so from 127.0.0.1.
    """
    host = str(ip_address("127.1.0.1") + randbelow(253 << 16))
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [Address(*each.getsockname()) for each in sockets]


def seats(count: int) -> list[MemberTask]:
    """Members of a group on the loopback address, by their names and where they find each other."""
    addresses = [str(address) for address in free_addresses(count)]
    return [
        MemberTask(member=_name(index), listen=address, peers=[each for each in addresses if each != address])
        for index, address in enumerate(addresses)
    ]


def _name(index: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[index] if index < len(letters) else f"m{index}"


async def run_tasks(
    program: Program[ProgressT], tasks: Sequence[MemberTask], on_progress: Callable[[int], None]
) -> list[ProgressT]:
    """Run each task in a process of its own; return how each ended. `on_progress` hears the slowest count."""
    followed: list[_Followed[ProgressT]] = []
    try:
        for task in tasks:
            followed.append(await _Followed.start(program, task))  # noqa: PERF401 - what has started must be ended
        delivered = [0] * len(tasks)

        def note(index: int, count: int) -> None:
            delivered[index] = count
            on_progress(min(delivered))

        for each in followed:
            await each.joined()
        for each in followed:
            each.go()
        async with asyncio.TaskGroup() as following:
            ends = [following.create_task(each.follow(index, note)) for index, each in enumerate(followed)]
        for each in followed:
            await each.finish()
        return [end.result() for end in ends]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        for each in followed:
            await each.end()


class _Followed(Generic[ProgressT]):
    """A member's process, seen from its parent."""

    def __init__(
        self, program: Program[ProgressT], task: MemberTask, process: asyncio.subprocess.Process
    ) -> None:
        self._program = program
        self._task = task
        self._process = process

    @classmethod
    async def start(cls, program: Program[ProgressT], task: MemberTask) -> "_Followed[ProgressT]":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            program.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(task) + b"\n")
        return cls(program, task, process)

    async def joined(self) -> None:
        """Wait until the member is in the group."""
        await self._progress()

    def go(self) -> None:
        """Let the member begin its work."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def follow(self, index: int, note: Callable[[int, int], None]) -> ProgressT:
        """Read progress until the member has delivered everything."""
        while not (progress := await self._progress()).digest:
            note(index, progress.delivered)
        note(index, progress.delivered)
        return progress

    async def _progress(self) -> ProgressT:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise GroupClosed(f"member {self._task.member} ended early: {await self._last_words()}")
        return msgspec.json.decode(line, type=self._program.progress)

    async def finish(self) -> None:
        """Let the member leave the group, now that all are done."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(_END_SECONDS):
            words = await self._last_words()
        if self._process.returncode:
            raise GroupClosed(f"member {self._task.member} did not end well: {words}")

    async def end(self) -> None:
        """Whatever happened, leave no process behind."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.communicate()

    async def _last_words(self) -> str:
        assert self._process.stderr is not None
        lines = (await self._process.stderr.read()).decode(errors="replace").strip().splitlines()
        await self._process.wait()
        return lines[-1] if lines else f"exit code {self._process.returncode}, without a word"
