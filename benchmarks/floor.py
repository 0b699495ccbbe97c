"""The floor: a prioritised sequencer with nothing around it.

No membership, links, checks, back-pressure, trace or API: eight levels, batches as opaque bytes, frames over
TCP, a window of consumed messages. It is what pure Python can reach at most on a machine, and so what the
group's rates are divided by.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush

import msgspec

from benchmarks.members import Load, MemberContext

LEVELS = 8


class Batch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    sender: int
    level: int
    first: int
    count: int
    block: bytes


class Submit(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    batches: list[Batch]


class Ordered(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    position: int
    batches: list[Batch]


class Consumed(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    total: int


encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Submit | Ordered | Consumed).decode
_open_block = msgspec.msgpack.Decoder(list[bytes]).decode


class Wire(asyncio.Protocol):
    """Length-prefixed frames."""

    transport: asyncio.Transport

    def __init__(self, member: "FloorMember", peer: int) -> None:
        self.member = member
        self.peer = peer
        self.rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.member.wires.append(self)

    def data_received(self, data: bytes) -> None:
        data = self.rest + data if self.rest else data
        view, start, end = memoryview(data), 0, len(data)
        while end - start >= 4:
            stop = start + 4 + int.from_bytes(view[start : start + 4])
            if stop > end:
                break
            self.member.receive(self.peer, _decode(view[start + 4 : stop]))
            start = stop
        self.rest = data[start:]

    def send(self, packet: Submit | Consumed) -> None:
        body = encode(packet)
        self.transport.write(len(body).to_bytes(4) + body)


class FloorMember:
    """Member 0 is the sequencer; the others know only it."""

    def __init__(self, me: int, load: Load) -> None:
        self.me = me
        self.load = load
        self.wires: list[Wire] = []
        self.queue: list[tuple[int, int, Batch]] = []
        self.arrivals = self.ordered = self.delivered = self.reported = self.sent = self.in_flight = 0
        self.consumed = [0] * load.members
        self.numbers = [0] * LEVELS
        self.pump_is_scheduled = False
        self.payload = bytes(load.payload_bytes)
        self.first_at = 0.0
        self.done = asyncio.Event()

    def receive(self, peer: int, packet: Submit | Ordered | Consumed) -> None:
        if isinstance(packet, Ordered):
            self.deliver(packet.batches)
        elif isinstance(packet, Submit):
            self.take(packet.batches)
        else:
            self.consumed[peer] = packet.total
            self.schedule_pump()

    def take(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.arrivals += 1
            heappush(self.queue, (-batch.level, self.arrivals, batch))
        self.schedule_pump()

    def schedule_pump(self) -> None:
        if not self.pump_is_scheduled:
            self.pump_is_scheduled = True
            asyncio.get_running_loop().call_soon(self.pump)

    def pump(self) -> None:
        self.pump_is_scheduled = False
        room = self.load.window - (self.ordered - min(self.consumed))
        while self.queue and room > 0:
            batches: list[Batch] = []
            count = 0
            while self.queue and count < room and count < self.load.frame_messages:
                batch = heappop(self.queue)[2]
                batches.append(batch)
                count += batch.count
            room -= count
            body = encode(Ordered(self.ordered, batches))
            self.ordered += count
            frame = len(body).to_bytes(4) + body
            for wire in self.wires:
                wire.transport.write(frame)
            self.deliver(batches)

    def deliver(self, batches: list[Batch]) -> None:
        load = self.load
        if not self.delivered:
            self.first_at = time.perf_counter()
        for batch in batches:
            for _payload in _open_block(batch.block):
                self.delivered += 1
            if batch.sender == self.me:
                self.in_flight -= batch.count
        finished = self.delivered >= load.total
        if self.me == 0:
            self.consumed[0] = self.delivered
        elif finished or self.delivered - self.reported >= load.window // 4:
            self.reported = self.delivered
            self.wires[0].send(Consumed(self.delivered))
        if self.sent < load.messages and self.in_flight < load.burst // 2:
            self.broadcast()
        if finished:
            self.done.set()

    def broadcast(self) -> None:
        count = min(self.load.burst - self.in_flight, self.load.messages - self.sent)
        levels: list[list[bytes]] = [[] for _ in range(LEVELS)]
        for number in range(self.sent, self.sent + count):
            levels[number % LEVELS].append(self.payload)
        self.sent += count
        self.in_flight += count
        batches = []
        for level in reversed(range(LEVELS)):
            if levels[level]:
                size = len(levels[level])
                batches.append(Batch(self.me, level, self.numbers[level], size, encode(levels[level])))
                self.numbers[level] += size
        if self.me == 0:
            self.take(batches)
        else:
            self.wires[0].send(Submit(batches))


@asynccontextmanager
async def connected(context: MemberContext, member: FloorMember) -> AsyncIterator[None]:
    """Connect all members to the sequencer; at the end, wait until all are done."""
    loop = asyncio.get_running_loop()
    server: asyncio.Server | None = None
    if member.me == 0:
        server = await loop.create_server(lambda: Wire(member, len(member.wires) + 1), *context.first_address)
        await context.barrier()
        while len(member.wires) < member.load.members - 1:
            await asyncio.sleep(0.01)
    else:
        await context.barrier()
        await loop.create_connection(lambda: Wire(member, 0), *context.first_address)
    await context.barrier()
    yield
    await context.barrier()
    if server is not None:
        server.close()


async def run_floor(context: MemberContext, load: Load) -> float:
    """One member's part; returns the messages per second that it delivered."""
    member = FloorMember(context.rank, load)
    async with connected(context, member):
        member.broadcast()
        await member.done.wait()
        return load.total / (time.perf_counter() - member.first_at)
