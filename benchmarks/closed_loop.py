"""Clients that call again as soon as they are answered, for a while, in every member's process."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from benchmarks.members import Load, MemberContext, run_members

SECONDS = 5.0

Call = Callable[[int], Awaitable[object]]


class MeasuredCalls(msgspec.Struct, frozen=True):
    """What one member measured: its answered calls, its CPU time, and a hash of its copy at the end."""

    count: int
    rate: float
    cpu_seconds: float
    copy_hash: str = ""


async def call_for_a_while(context: MemberContext, clients: int, call: Call) -> MeasuredCalls:
    """Let so many clients call for some seconds, with a number for each call, until all members are done."""
    await context.barrier()
    number = answered = 0
    started, cpu_started = time.perf_counter(), time.process_time()
    ends_at = started + SECONDS

    async def work() -> None:
        nonlocal number, answered
        while time.perf_counter() < ends_at:
            number += 1
            await call(number)
            answered += 1

    await asyncio.gather(*(work() for _ in range(clients)))
    seconds = time.perf_counter() - started
    await context.barrier()
    return MeasuredCalls(answered, answered / seconds, time.process_time() - cpu_started)


def hash_of(items: Iterable[Any]) -> str:
    """A hash of what a copy has, in any order."""
    return blake2b(msgspec.msgpack.encode(sorted(items))).hexdigest()


def measure(part: Callable[..., Awaitable[MeasuredCalls]], load: Load, *arguments: object) -> MeasuredCalls:
    """Run a part in all members' processes; what all measured together. Their copies must be equal."""
    results = [msgspec.convert(each, MeasuredCalls) for each in run_members(part, load, *arguments)]
    assert len({each.copy_hash for each in results}) == 1, f"the copies of {part.__name__} differ"
    return MeasuredCalls(
        sum(each.count for each in results),
        sum(each.rate for each in results),
        sum(each.cpu_seconds for each in results),
    )
