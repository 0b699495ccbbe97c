"""Messages per second through a group, when all members broadcast as fast as flow control allows."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import priocast
from benchmarks.members import Load, MemberContext
from priocast.runtime.node import WithNode
from priocast.runtime.parameters import DeliveryGuarantee

LEVELS = 8
_PRIORITIES = [256 // LEVELS * level for level in range(LEVELS)]


def joining(
    context: MemberContext,
    prioritised: bool,
    trace: str = "",
    order: str = "sequencer-ub",
    delivery: DeliveryGuarantee = "agreed",
) -> WithNode[priocast.Group]:
    """Join the group; an empty `trace` records nothing."""
    return priocast.join(
        "bench",
        member=context.task.member,
        listen=context.task.listen,
        peers=context.task.peers,
        order=order,
        prioritised=prioritised,
        delivery=delivery,
        trace=Path(trace) if trace else None,
        incarnation=1,
    )


async def by_batches(context: MemberContext, load: Load, prioritised: bool, trace: str, order: str) -> float:
    """A batch at a time: `broadcast_many` and `batches`."""
    total, delivered, first_at = load.total, 0, 0.0
    async with joining(context, prioritised, trace, order) as group:
        await context.barrier()
        sending = asyncio.create_task(_send_batches(group, load))
        async for batch in group.batches():
            first_at = first_at or time.perf_counter()
            for _payload in batch.payloads:
                delivered += 1
            if delivered == total:
                break
        rate = delivered / (time.perf_counter() - first_at)
        await sending
        await context.barrier()
    return rate


async def for_fixed_time(
    context: MemberContext,
    load: Load,
    prioritised: bool,
    order: str,
    seconds: float,
    delivery: DeliveryGuarantee = "agreed",
) -> float:
    """A batch at a time, for a fixed time: the rate while the group is busy, without its start and end."""
    delivered = 0

    async def receive() -> None:
        nonlocal delivered
        with suppress(priocast.GroupClosed):
            async for batch in group.batches():
                delivered += len(batch.payloads)

    async with joining(context, prioritised, order=order, delivery=delivery) as group:
        await context.barrier()
        receiving = asyncio.create_task(receive())
        sending = asyncio.create_task(_send_batches(group, load))
        await asyncio.sleep(seconds / 4)
        started, delivered_before = time.perf_counter(), delivered
        await asyncio.sleep(seconds)
        rate = (delivered - delivered_before) / (time.perf_counter() - started)
        await context.barrier()
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


async def one_by_one(context: MemberContext, load: Load, prioritised: bool, trace: str) -> float:
    """A message at a time: `broadcast` and `async for`."""
    total, delivered, first_at = load.total, 0, 0.0
    async with joining(context, prioritised, trace) as group:
        await context.barrier()
        sending = asyncio.create_task(_send_one_by_one(group, load))
        async for event in group:
            if isinstance(event, priocast.Delivery):
                first_at = first_at or time.perf_counter()
                delivered += 1
                if delivered == total:
                    break
        rate = delivered / (time.perf_counter() - first_at)
        await sending
        await context.barrier()
    return rate


async def _send_one_by_one(group: priocast.Group, load: Load) -> None:
    payload = bytes(load.payload_bytes)
    for number in range(load.messages):
        await group.broadcast(payload, _PRIORITIES[number % LEVELS])
