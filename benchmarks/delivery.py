"""Delivery time at low load: from `broadcast` to the sender's own delivery, beside two floors.

The raw round trip is what no sequencer can beat: the same processes at the same pace, each sending its
payload to the first one and getting it back, with nothing but uvloop and TCP. The bare sequencer (`floor.py`)
is what none that is written in Python can beat: all members get every message, and an application waits
for it.
"""

import asyncio
import socket
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TypedDict

import priocast
from benchmarks.floor import Batch, FloorMember, Submit, connected, encode
from benchmarks.members import Load, MemberContext
from priocast.runtime.parameters import DeliveryGuarantee

RATE_PER_MEMBER = 100
_BARE_WINDOW = 1_024  # members report what they consumed every 256 messages: hardly ever


class VariantOptions(TypedDict, total=False):
    """How one of two groups of the same members is joined."""

    prioritised: bool
    delivery: DeliveryGuarantee


PLAIN: VariantOptions = {"prioritised": False}
PRIORITISED: VariantOptions = {"prioritised": True}


def pace(number: int, me: int, members: int, rate: float) -> float:
    """When a member sends its number-th message: evenly, and not all members at once."""
    return (number + me / members) / rate


class _Variant:
    """One of two groups of the same members."""

    def __init__(self, group: priocast.Group) -> None:
        self._group = group
        self._sent: list[float] = []
        self.times: list[float] = []

    async def send(self, payload: bytes) -> None:
        """Broadcast a message, and note the time."""
        self._sent.append(time.perf_counter())
        await self._group.broadcast(payload)

    async def receive(self, total: int) -> None:
        """Measure own messages until all messages of the group have been delivered."""
        async for event in self._group:
            if isinstance(event, priocast.Delivery):
                if event.message.sender == self._group.me:
                    self.times.append(time.perf_counter() - self._sent[event.message.number])
                if event.position == total - 1:
                    return


async def by_variants(
    context: MemberContext,
    load: Load,
    order: str,
    rate: float,
    one: VariantOptions = PLAIN,
    other: VariantOptions = PRIORITISED,
) -> tuple[list[float], list[float]]:
    """Delivery times in seconds of this member's own messages in two groups with different options.

    The groups have the same processes and send alternately, at `rate` in all: what disturbs the machine
    disturbs both alike.
    """
    me, task = context.rank, context.task
    payload = bytes(load.payload_bytes)
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(
            priocast.open_node(task.member, listen=task.listen, peers=task.peers)
        )
        joinings = [
            node.join(name, order=order, incarnation=1, **options)
            for name, options in (("one", one), ("other", other))
        ]
        groups = await asyncio.gather(*map(stack.enter_async_context, joinings))
        variants = [_Variant(group) for group in groups]
        receiving = [asyncio.create_task(variant.receive(load.total)) for variant in variants]
        await context.barrier()
        started = time.perf_counter()
        for number in range(2 * load.messages):
            await asyncio.sleep(started + pace(number, me, load.members, rate) - time.perf_counter())
            await variants[number % 2].send(payload)
        await asyncio.gather(*receiving)
        await context.barrier()
    return variants[0].times, variants[1].times


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]


class _Ping(_Echo):
    def __init__(self) -> None:
        self.answered: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        assert self.answered is not None
        self.answered.set_result(None)


async def by_echo(context: MemberContext, load: Load) -> list[float]:
    """Raw round trips in seconds between this process and the first one."""
    loop = asyncio.get_running_loop()
    payload = bytes(load.payload_bytes)
    times: list[float] = []
    me = context.rank
    if me == 0:
        server = await loop.create_server(_Echo, *context.first_address)
        await context.barrier()
        await context.barrier()
        server.close()
        return times
    await context.barrier()
    _, ping = await loop.create_connection(_Ping, *context.first_address)
    started = time.perf_counter()
    for number in range(load.messages):
        await asyncio.sleep(started + pace(number, me, load.members, RATE_PER_MEMBER) - time.perf_counter())
        ping.answered = loop.create_future()
        sent = time.perf_counter()
        ping.transport.write(payload)  # type: ignore[attr-defined]
        await ping.answered
        times.append(time.perf_counter() - sent)
    await context.barrier()
    return times


class _PacedFloorMember(FloorMember):
    """A member of the floor whose application waits for messages and sends single ones."""

    def __init__(self, me: int, load: Load) -> None:
        super().__init__(me, load)
        self._delivered: list[Batch] = []
        self._awaited: asyncio.Future[None] | None = None
        self._sent_at: list[float] = []
        self.times: list[float] = []

    def broadcast(self) -> None:
        """The floor sends its next burst here; this member sends at its own pace."""

    def send(self) -> None:
        self._sent_at.append(time.perf_counter())
        self.in_flight += 1
        batches = [Batch(self.me, 0, len(self._sent_at), 1, encode([self.payload]))]
        if self.me == 0:
            self.take(batches)
        else:
            self.wires[0].send(Submit(batches))

    def deliver(self, batches: list[Batch]) -> None:
        super().deliver(batches)
        self._delivered += batches
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    async def consume(self) -> None:
        """Take all messages, and measure own ones."""
        consumed = 0
        while consumed < self.load.total:
            if not self._delivered:
                self._awaited = asyncio.get_running_loop().create_future()
                await self._awaited
            batches, self._delivered = self._delivered, []
            consumed += len(batches)
            for batch in batches:
                if batch.sender == self.me:
                    self.times.append(time.perf_counter() - self._sent_at[len(self.times)])


async def by_bare_sequencer(context: MemberContext, load: Load) -> list[float]:
    """Delivery times in seconds of this member's own messages through the bare sequencer."""
    member = _PacedFloorMember(context.rank, replace(load, window=_BARE_WINDOW))
    async with connected(context, member):
        consuming = asyncio.create_task(member.consume())
        started = time.perf_counter()
        for number in range(load.messages):
            at = started + pace(number, context.rank, load.members, RATE_PER_MEMBER)
            await asyncio.sleep(at - time.perf_counter())
            member.send()
        await consuming
    return member.times


def median_of_followers(times: Sequence[list[float]]) -> float:
    """The median over all members but the first, which is the sequencer and needs no hop."""
    return statistics.median(value for member in times[1:] for value in member)
