"""One replica of the study of insertion times, as a process: `python -m priocast.study.reorder_worker`.

A replica is in one group for each variant, all at the same time and over the same connections. The variants
alternate, message by message, so what disturbs the machine disturbs them alike. In every group a few routine
messages stay queued. One replica broadcasts urgent messages, one at a time; as soon as one has its position
in a replica's queue it is consumed there, so the queues keep their length. Between them, the sender measures
the raw round trip: the same bytes to another replica's process and back, with only an event loop and TCP.
"""

import asyncio
import hashlib
import socket
import time
from contextlib import AsyncExitStack
from typing import cast

import msgspec

from priocast.core.errors import DeadlineExceeded, PriocastError
from priocast.core.identity import ProcessId
from priocast.core.message import OrderedBatch
from priocast.core.priority import ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.membership.options import MembershipOptions
from priocast.membership.stream_items import ViewStart
from priocast.network.address import Address, parse_address
from priocast.network.interface import Receiver
from priocast.network.tcp import TcpNetwork
from priocast.network.tcp_port import TcpPort
from priocast.runtime.driver import Driver
from priocast.runtime.node import Node
from priocast.testing.worker import MemberProgress, MemberTask, read_line, report, run_worker, wait_start

ROUND_TRIP = "raw round trip"
WARM_UP = 10
_PAUSE_SECONDS = 0.003
_LIMIT_SECONDS = 60.0
_POLL_SECONDS = 0.01
_PROGRESS_SECONDS = 0.25
_WINDOW = 1024
# All replicas share one busy machine: a slow replica must not be suspected.
_MEMBERSHIP = MembershipOptions(founders=2, heartbeat_ms=500, failure_ms=10_000, slow_ms=60_000)
_DROPPED = (RuntimeError, RuntimeError("no longer needed"), None)


class OrderVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol with its options."""

    name: str
    order: str
    prioritised: bool = True
    distributed: bool = False


class InsertionTask(MemberTask, frozen=True, kw_only=True):
    """The task of one replica; `echo` is the address at which the first one answers raw round trips."""

    ways: list[OrderVariant]
    messages: int
    payload_bytes: int
    queued: int
    echo: str
    echoes: bool
    sends: bool


class InsertionReport(MemberProgress, frozen=True, kw_only=True):
    """When the urgent messages of each variant were sent and had their positions (monotonic clock, ns).

    `overtaken` counts those that were not the next to be consumed although they were the most urgent.
    """

    sent: dict[str, list[int]] = msgspec.field(default_factory=dict)
    placed: dict[str, list[int]] = msgspec.field(default_factory=dict)
    overtaken: int = 0


class InsertionQueue:
    """One group's application: it consumes only what exceeds the queued messages."""

    def __init__(self, way: OrderVariant, queued: int) -> None:
        self.way = way
        self.driver: Driver | None = None
        self.sent: list[int] = []
        self.placed: list[int] = []
        self.overtaken = 0
        self.digest = hashlib.sha256()
        self._queued = queued
        self._waits: asyncio.Future[None] | None = None

    @property
    def length(self) -> int:
        """How many messages wait for the application."""
        assert self.driver is not None and self.driver.member.epoch is not None
        return self.driver.member.epoch.protocol.inspect(now=0).unconsumed

    def look(self) -> None:
        """Check whether one more message has its position, and consume the head then."""
        while self.driver is not None and self.length > self._queued:
            head = self.driver.head()
            if not isinstance(head, OrderedBatch):
                return
            self.placed.append(time.monotonic_ns())
            self.overtaken += self.way.prioritised and head.batch.level != URGENT
            self.digest.update(f"{self.way.name} {head.position + head.taken} {head.batch} ".encode())
            self.driver.taken += 1
            self.driver.turn()
            if self._waits is not None and not self._waits.done():
                self._waits.set_result(None)

    async def send(self, payload: bytes) -> None:
        """Broadcast an urgent message, and wait until it has its position here."""
        assert self.driver is not None
        self._waits = asyncio.get_running_loop().create_future()
        self.sent.append(time.monotonic_ns())
        self.driver.broadcast(payload, URGENT)
        await _in_time(self._waits, f"an urgent message has no position in {self.way.name}")


class _Watched:
    """Sits between the network and a group, and checks its queue after every reception."""

    def __init__(self, receiver: Receiver, queue: InsertionQueue) -> None:
        self._receiver = receiver
        self._queue = queue

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        self._receiver.reachable(peer, role)

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        self._receiver.frames_received(peer, frames, role)
        self._queue.look()

    def hears(self, peer: str) -> bool:
        return self._receiver.hears(peer)

    def failed(self, error: PriocastError) -> None:
        self._receiver.failed(error)


class WatchedNetwork(TcpNetwork):
    """A network that checks the queues of its groups."""

    def __init__(
        self, name: str, listen: Address, peers: list[Address], queues: list[InsertionQueue]
    ) -> None:
        super().__init__(name, listen, peers)
        self._queues = {queue.way.name: queue for queue in queues}

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> TcpPort:
        return super().open(group, process, _Watched(receiver, self._queues[group]))


class Echo(asyncio.Protocol):
    """Returns the bytes that it receives."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Caller(Echo):
    """Sends bytes to an echo, and waits until all of them are back."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.answered: list[int] = []
        self._missing = 0
        self._waits: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        self._missing -= len(data)
        if self._missing == 0 and self._waits is not None:
            self.answered.append(time.monotonic_ns())
            self._waits.set_result(None)

    async def send(self, payload: bytes) -> None:
        """One round trip."""
        self._waits = asyncio.get_running_loop().create_future()
        self._missing = len(payload)
        self.sent.append(time.monotonic_ns())
        self.transport.write(payload)
        await _in_time(self._waits, "an echo has not come back")


async def work(task: InsertionTask) -> None:
    """Take part in one round."""
    loop = asyncio.get_running_loop()
    queues = [InsertionQueue(way, task.queued) for way in task.ways]
    peers = [parse_address(peer) for peer in task.peers]
    network = WatchedNetwork(task.member, parse_address(task.listen), peers, queues)
    async with AsyncExitStack() as stack:
        if task.echoes:
            server = await loop.create_server(Echo, *parse_address(task.echo))
            stack.callback(server.close)
        node = await stack.enter_async_context(Node(task.member, network, len(peers) + 1, None))
        await asyncio.gather(*(_join(node, queue, len(peers) + 1, stack) for queue in queues))
        await wait_start()
        reporting = asyncio.create_task(_report(queues, task.messages))
        caller = await _measure(task, queues) if task.sends else None
        await reporting
        report(_summary(queues, caller))
        await read_line()


async def _join(node: Node, queue: InsertionQueue, founders: int, stack: AsyncExitStack) -> None:
    way = queue.way
    joining = node.join(
        way.name,
        order=way.order,
        options=OrderingOptions(distributed=way.distributed, window=_WINDOW),
        prioritised=way.prioritised,
        membership=_MEMBERSHIP,
        founders=founders,
        incarnation=1,
    )
    await joining.__aenter__()
    # The group is not needed in the end: dropping it is faster than leaving it.
    stack.push_async_callback(joining.__aexit__, *_DROPPED)
    driver = node.groups[way.name]
    head = driver.head()
    assert isinstance(head, ViewStart)
    driver.consume_event(head)
    queue.driver = driver
    queue.look()


async def _measure(task: InsertionTask, queues: list[InsertionQueue]) -> Caller:
    """Fill the queues, and send urgent messages and raw round trips alternately."""
    _, caller = await asyncio.get_running_loop().create_connection(Caller, *parse_address(task.echo))
    for queue in queues:
        assert queue.driver is not None
        queue.driver.broadcast_many([bytes(task.payload_bytes)] * task.queued, ROUTINE)
    while any(queue.length < task.queued for queue in queues):
        await asyncio.sleep(_POLL_SECONDS)
    payload = bytes(task.payload_bytes)
    ways = [caller.send, *(queue.send for queue in queues)]
    for number in range(WARM_UP + task.messages):
        for turn in range(len(ways)):
            await asyncio.sleep(_PAUSE_SECONDS)
            await ways[(number + turn) % len(ways)](payload)
    caller.transport.close()
    return caller


def _placed(queues: list[InsertionQueue]) -> int:
    """How many messages have their positions in all groups, without the warm-up."""
    return max(0, min(len(queue.placed) for queue in queues) - WARM_UP)


async def _report(queues: list[InsertionQueue], messages: int) -> None:
    """Report progress until all is done."""
    while _placed(queues) < messages:
        report(MemberProgress(delivered=_placed(queues)))
        await asyncio.sleep(_PROGRESS_SECONDS)


def _summary(queues: list[InsertionQueue], caller: Caller | None) -> InsertionReport:
    sent = {queue.way.name: queue.sent[WARM_UP:] for queue in queues if queue.sent}
    placed = {queue.way.name: queue.placed[WARM_UP:] for queue in queues}
    if caller is not None:
        sent[ROUND_TRIP], placed[ROUND_TRIP] = caller.sent[WARM_UP:], caller.answered[WARM_UP:]
    return InsertionReport(
        delivered=_placed(queues),
        digest=" ".join(queue.digest.hexdigest() for queue in queues),
        sent=sent,
        placed=placed,
        overtaken=sum(queue.overtaken for queue in queues),
    )


async def _in_time(waits: "asyncio.Future[None]", otherwise: str) -> None:
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            await waits
    except TimeoutError:
        raise DeadlineExceeded(f"{otherwise} after {_LIMIT_SECONDS:g} s") from None


if __name__ == "__main__":
    run_worker(InsertionTask, work)
