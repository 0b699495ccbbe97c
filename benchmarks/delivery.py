"""Delivery time at low load: from `broadcast` to the sender's own delivery, beside a raw round trip.

The raw round trip is what no sequencer can beat: the same processes at the same pace, each sending its
payload to the first one and getting it back, with nothing but uvloop and TCP.
"""

import asyncio
import socket
import statistics
import time

import priocast
from benchmarks.processes import Load, Meeting
from benchmarks.rates import joining

RATE_PER_MEMBER = 100


def _pace(number: int, me: int, members: int, rate: float) -> float:
    """When a member sends its number-th message: evenly, and not all members at once."""
    return (number + me / members) / rate


async def by_group(
    me: int, load: Load, prioritised: bool, order: str, rate: float, meeting: Meeting
) -> list[float]:
    """Delivery times in seconds of this member's own messages, at so many a second."""
    payload = bytes(load.payload_bytes)
    sent: list[float] = []
    times: list[float] = []
    async with joining(me, load, prioritised, "", meeting, order) as group:
        await meeting.wait()
        started = time.perf_counter()

        async def send() -> None:
            for number in range(load.messages):
                await asyncio.sleep(started + _pace(number, me, load.members, rate) - time.perf_counter())
                sent.append(time.perf_counter())
                await group.broadcast(payload)

        sending = asyncio.create_task(send())
        async for event in group:
            if isinstance(event, priocast.Delivery):
                if event.message.sender.name == f"m{me}":
                    times.append(time.perf_counter() - sent[event.message.number])
                if event.position == load.total - 1:
                    break
        await sending
        await meeting.wait()
    return times


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


async def by_echo(me: int, load: Load, meeting: Meeting) -> list[float]:
    """Raw round trips in seconds between this process and the first one."""
    loop = asyncio.get_running_loop()
    payload = bytes(load.payload_bytes)
    times: list[float] = []
    if me == 0:
        server = await loop.create_server(_Echo, *meeting.address(0))
        await meeting.wait()
        await meeting.wait()
        server.close()
        return times
    await meeting.wait()
    _, ping = await loop.create_connection(_Ping, *meeting.address(0))
    started = time.perf_counter()
    for number in range(load.messages):
        await asyncio.sleep(started + _pace(number, me, load.members, RATE_PER_MEMBER) - time.perf_counter())
        ping.answered = loop.create_future()
        sent = time.perf_counter()
        ping.transport.write(payload)  # type: ignore[attr-defined]
        await ping.answered
        times.append(time.perf_counter() - sent)
    await meeting.wait()
    return times


def median_of_followers(times: list[list[float]]) -> float:
    """The median over all members but the first, which sequences and so has no way to go."""
    return statistics.median(value for member in times[1:] for value in member)
