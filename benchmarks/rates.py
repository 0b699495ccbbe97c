"""Messages per second through a group, when all members broadcast as fast as flow control allows."""

import asyncio
import time
from collections.abc import AsyncIterator

import priocast
from benchmarks.processes import Load, Meeting

LEVELS = 8
_PRIORITIES = [32 * level + 16 for level in range(LEVELS)]


def _joining(me: int, load: Load, prioritised: bool, meeting: Meeting, trace: str) -> "priocast.runtime.group.Joining":
    addresses = [f"{host}:{port}" for host, port in map(meeting.address, range(load.members))]
    return priocast.join(
        "bench",
        member=f"m{me}",
        listen=addresses[me],
        peers=[address for member, address in enumerate(addresses) if member != me],
        prioritised=prioritised,
        trace=priocast_path(trace),
        incarnation=1,
    )


def priocast_path(trace: str):
    from pathlib import Path
    return Path(trace) if trace else None


async def by_batches(me: int, load: Load, prioritised: bool, trace: str, meeting: Meeting) -> float:
    """A batch at a time: `broadcast_many` and `batches`."""
    payloads = [bytes(load.payload_bytes)] * (load.burst // LEVELS)
    async with _joining(me, load, prioritised, meeting, trace) as group:
        await meeting.wait()
        async def send() -> None:
            left = load.messages
            turn = 0
            while left:
                count = min(left, len(payloads))
                await group.broadcast_many(payloads[:count], _PRIORITIES[turn % LEVELS])
                left -= count
                turn += 1
        sending = asyncio.create_task(send())
        total, delivered, first_at = load.total, 0, 0.0
        async for batch in group.batches():
            first_at = first_at or time.perf_counter()
            for _payload in batch.payloads:
                delivered += 1
            if delivered == total:
                break
        rate = delivered / (time.perf_counter() - first_at)
        await sending
        await meeting.wait()
    return rate


async def one_by_one(me: int, load: Load, prioritised: bool, trace: str, meeting: Meeting) -> float:
    """A message at a time: `broadcast` and `async for`."""
    payload = bytes(load.payload_bytes)
    async with _joining(me, load, prioritised, meeting, trace) as group:
        await meeting.wait()
        async def send() -> None:
            for number in range(load.messages):
                await group.broadcast(payload, _PRIORITIES[number % LEVELS])
        sending = asyncio.create_task(send())
        total, delivered, first_at = load.total, 0, 0.0
        async for event in group:
            if isinstance(event, priocast.Delivery):
                first_at = first_at or time.perf_counter()
                delivered += 1
                if delivered == total:
                    break
        rate = delivered / (time.perf_counter() - first_at)
        await sending
        await meeting.wait()
    return rate
