"""Messages per second through a group, when all members broadcast as fast as flow control allows."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import priocast
from benchmarks.processes import Load, Meeting
from priocast.runtime.node import WithNode

LEVELS = 8
_PRIORITIES = [256 // LEVELS * level for level in range(LEVELS)]


def joining(
    me: int, prioritised: bool, trace: str, meeting: Meeting, order: str = "sequencer-ub"
) -> WithNode[priocast.Group]:
    """One member's way into the group; an empty `trace` records nothing."""
    listen, peers = meeting.way(me)
    return priocast.join(
        "bench",
        member=f"m{me}",
        listen=listen,
        peers=peers,
        order=order,
        prioritised=prioritised,
        trace=Path(trace) if trace else None,
        incarnation=1,
    )


async def by_batches(
    me: int, load: Load, prioritised: bool, trace: str, order: str, meeting: Meeting
) -> float:
    """A batch at a time: `broadcast_many` and `batches`."""
    total, delivered, first_at = load.total, 0, 0.0
    async with joining(me, prioritised, trace, meeting, order) as group:
        await meeting.wait()
        sending = asyncio.create_task(_send_batches(group, load))
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


async def for_a_while(
    me: int, load: Load, prioritised: bool, order: str, seconds: float, meeting: Meeting
) -> float:
    """A batch at a time, by time: the rate while the group is busy, without its beginning and its end."""
    delivered = 0

    async def receive() -> None:
        nonlocal delivered
        with suppress(priocast.GroupClosed):
            async for batch in group.batches():
                delivered += len(batch.payloads)

    async with joining(me, prioritised, "", meeting, order) as group:
        await meeting.wait()
        receiving = asyncio.create_task(receive())
        sending = asyncio.create_task(_send_batches(group, load))
        await asyncio.sleep(seconds / 4)
        started, delivered_before = time.perf_counter(), delivered
        await asyncio.sleep(seconds)
        rate = (delivered - delivered_before) / (time.perf_counter() - started)
        await meeting.wait()
        sending.cancel()
    await receiving
    return rate


async def _send_batches(group: priocast.Group, load: Load) -> None:
    payloads = [bytes(load.payload_bytes)] * (load.burst // LEVELS)
    left, turn = load.messages, 0
    while left:
        count = min(left, len(payloads))
        await group.broadcast_many(payloads[:count], _PRIORITIES[turn % LEVELS])
        left -= count
        turn += 1


async def one_by_one(me: int, load: Load, prioritised: bool, trace: str, meeting: Meeting) -> float:
    """A message at a time: `broadcast` and `async for`."""
    total, delivered, first_at = load.total, 0, 0.0
    async with joining(me, prioritised, trace, meeting) as group:
        await meeting.wait()
        sending = asyncio.create_task(_send_one_by_one(group, load))
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


async def _send_one_by_one(group: priocast.Group, load: Load) -> None:
    payload = bytes(load.payload_bytes)
    for number in range(load.messages):
        await group.broadcast(payload, _PRIORITIES[number % LEVELS])
