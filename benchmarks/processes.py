"""Real processes for a benchmark: started together, met at barriers, ended by themselves."""

import asyncio
import multiprocessing
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any

from priocast.network.address import Address
from priocast.runtime import event_loop
from priocast.runtime.gc_freeze import freeze_gc
from priocast.study.processes import free_addresses

_SPAWN = multiprocessing.get_context("spawn")
_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class Load:
    """What every member does. Burst, window and frame are the floor's, chosen so that it is fastest."""

    members: int
    messages: int
    payload_bytes: int
    burst: int
    window: int
    frame_messages: int

    @property
    def total(self) -> int:
        """How many messages each member delivers."""
        return self.members * self.messages


@dataclass(frozen=True)
class Meeting:
    """Where the processes of one run meet."""

    barrier: Barrier
    addresses: tuple[Address, ...]

    def way(self, me: int) -> tuple[str, list[str]]:
        """Where a member listens, and where the others do, as they are written."""
        written = [str(address) for address in self.addresses]
        return written.pop(me), written

    async def wait(self) -> None:
        """Wait until all processes have come this far."""
        await asyncio.get_running_loop().run_in_executor(None, self.barrier.wait, _LIMIT_SECONDS)


def run_members(count: int, part: Callable[..., Awaitable[Any]], *arguments: object) -> list[Any]:
    """Run `part(member, *arguments, meeting)` in `count` processes; return what each returned."""
    meeting = Meeting(_SPAWN.Barrier(count), tuple(free_addresses(count)))
    results: multiprocessing.Queue[tuple[int, Any, str]] = _SPAWN.Queue()
    processes = [
        _SPAWN.Process(target=_member, args=(member, part, arguments, meeting, results))
        for member in range(count)
    ]
    for process in processes:
        process.start()
    try:
        answers = [results.get(timeout=_LIMIT_SECONDS) for _ in processes]
    finally:
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
    for _, _, failure in answers:
        if failure:
            raise RuntimeError(f"a member failed:\n{failure}")
    return [answer for _, answer, _ in sorted(answers, key=lambda answer: answer[0])]


def _member(
    member: int,
    part: Callable[..., Awaitable[Any]],
    arguments: tuple[object, ...],
    meeting: Meeting,
    results: Any,
) -> None:
    freeze_gc()

    async def run() -> Any:
        return await part(member, *arguments, meeting)

    try:
        results.put((member, event_loop.run(run()), ""))
    except BaseException:
        meeting.barrier.abort()
        results.put((member, None, traceback.format_exc()))


def slowest(load: Load, part: Callable[..., Any], *arguments: object) -> float:
    """The rate of the slowest member."""
    return min(map(float, run_members(load.members, part, load, *arguments)))
