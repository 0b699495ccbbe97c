"""The group as the application sees it: broadcast into it, iterate over it.

async with priocast.join("tickets", member="a", listen="127.0.0.1:7401", peers=[...]) as group:
    await group.broadcast(b"one seat", priority=priocast.URGENT)
    async for event in group:
        ...
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType

import msgspec

from priocast.core.errors import InvalidInput, Overloaded, PayloadTooLarge
from priocast.core.events import DeliveredBatch, Delivery, Event, ViewChange
from priocast.core.identity import ProcessId, check_name
from priocast.core.message import PAYLOAD_BYTES_MAX, Message
from priocast.core.priority import ROUTINE, check_priority
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.network.address import parse_address
from priocast.network.interface import Introduction, Network
from priocast.network.memory import MemoryHub
from priocast.network.tcp import TcpNetwork
from priocast.protocols import find_protocol
from priocast.runtime.node import Node
from priocast.runtime.tracing import Tracing

START_SECONDS = 30.0
CLOSE_SECONDS = 5.0


class Group:
    """A group that this process is a member of. Use one iteration at a time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._view_told = False

    @property
    def view(self) -> View:
        """The members of the group."""
        return self._node.view

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a place in the order."""
        return self._node.member.backlog

    def broadcast_nowait(self, payload: bytes, priority: int = ROUTINE) -> None:
        """Broadcast a message now, or raise `Overloaded` if there is no room for one of this priority."""
        check_payload(payload)
        check_priority(priority)
        if not self._node.broadcast(payload, priority):
            raise Overloaded(f"no room for a message of priority {priority}: {self._node.why_full()}")

    async def broadcast(
        self, payload: bytes, priority: int = ROUTINE, *, timeout_seconds: float | None = None
    ) -> None:
        """Broadcast a message; wait for room if there is none, at most so long."""
        if type(payload) is not bytes or len(payload) > PAYLOAD_BYTES_MAX:
            check_payload(payload)
        check_priority(priority)
        if not self._node.broadcast(payload, priority):
            await self._node.broadcast_when_room([payload], priority, timeout_seconds)

    async def broadcast_many(
        self, payloads: list[bytes], priority: int = ROUTINE, *, timeout_seconds: float | None = None
    ) -> None:
        """Broadcast messages of one priority, in this order; wait for room as needed, at most so long."""
        if set(map(type, payloads)) != {bytes} or max(map(len, payloads)) > PAYLOAD_BYTES_MAX:
            for payload in payloads:
                check_payload(payload)
        check_priority(priority)
        if payloads and not self._node.broadcast_many(payloads, priority):
            await self._node.broadcast_when_room(payloads, priority, timeout_seconds)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The ordered stream, one event at a time. A message counts as consumed when it is handed out."""
        node = self._node
        if not self._view_told:
            self._view_told = True
            yield ViewChange(node.view)
        while True:
            stretch = node.head() or await node.wait_head()
            batch, payloads, position = stretch.batch, stretch.payloads, stretch.position
            sender, level, first, priorities = batch.sender, batch.level, batch.first, batch.priorities
            settlements, last = node.settlements, batch.count - 1
            if stretch.taken < last:
                node.be_due()
            for index in range(stretch.taken, batch.count):
                node.taken += 1
                if index == last:
                    node.settle()
                priority = priorities[index] if priorities else level
                message = Message(sender, level, first + index, priority, payloads[index])
                yield Delivery(message, position + index)
                if node.settlements != settlements:
                    break

    async def batches(self) -> AsyncIterator[DeliveredBatch]:
        """The ordered messages, a batch at a time. A batch counts as consumed when it is handed out."""
        node = self._node
        while True:
            stretch = node.head() or await node.wait_head()
            batch, taken = stretch.batch, stretch.taken
            payloads = stretch.payloads[taken:] if taken else stretch.payloads
            node.taken += len(payloads)
            node.settle()
            yield DeliveredBatch(
                batch.sender,
                batch.level,
                batch.first + taken,
                stretch.position + taken,
                payloads,
                batch.priorities[taken:],
            )


class Joining:
    """What `join` returns: entering it joins the group, leaving it leaves the group."""

    def __init__(
        self,
        introduction: Introduction,
        options: OrderingOptions,
        network: Network,
        tracing: Tracing | None,
        start_seconds: float,
    ) -> None:
        self._introduction = introduction
        self._options = options
        self._network = network
        self._tracing = tracing
        self._start_seconds = start_seconds
        self._node: Node | None = None

    async def __aenter__(self) -> Group:
        introduction = self._introduction
        observer = self._tracing.open() if self._tracing else None
        node = Node(
            introduction.process,
            introduction.size,
            introduction.order,
            self._options,
            self._network,
            observer,
        )
        try:
            await node.start(self._start_seconds)
        except BaseException:
            await node.close(0)
            if self._tracing:
                self._tracing.close()
            raise
        if self._tracing:
            self._tracing.describe(introduction, self._options, node.view)
        self._node = node
        return Group(node)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._node is not None
        await self._node.close(CLOSE_SECONDS if kind is None else 0)
        if self._tracing:
            self._tracing.close()


def join(
    group: str,
    *,
    member: str,
    listen: str | None = None,
    peers: list[str] | None = None,
    hub: MemoryHub | None = None,
    size: int | None = None,
    order: str = "sequencer-ub",
    options: OrderingOptions | None = None,
    prioritised: bool = True,
    incarnation: int | None = None,
    trace: Path | None = None,
    run: str = "",
    labels: dict[str, str] | None = None,
    start_seconds: float = START_SECONDS,
) -> Joining:
    """Join a group, as an asynchronous context manager.

    Over TCP: `listen` is this member's address, `peers` are those of all the others. Within one process:
    `hub` and `size`. All members must name the same group, order and options. `trace` is a directory to
    record the run in.
    """
    options = msgspec.structs.replace(options or OrderingOptions(), prioritised=prioritised)
    find_protocol(order)
    process = ProcessId(check_name(member, "member"), incarnation or time.time_ns() // 1_000_000)
    count = len(peers) + 1 if peers is not None else size
    if count is None or (hub is None) == (listen is None):
        raise InvalidInput("give either listen= and peers= (TCP), or hub= and size= (within one process)")
    introduction = Introduction(
        check_name(group, "group"), process, count, order, msgspec.json.encode(options).decode()
    )
    network: Network
    if hub is not None:
        network = hub.network(introduction)
    else:
        assert listen is not None
        network = TcpNetwork(
            introduction, parse_address(listen), [parse_address(peer) for peer in peers or ()]
        )
    tracing = Tracing(trace, run or group, process, labels or {}) if trace is not None else None
    return Joining(introduction, options, network, tracing, start_seconds)


def check_payload(payload: bytes) -> None:
    """Raise if this cannot be the payload of a message."""
    if type(payload) is not bytes:
        raise InvalidInput(f"a payload is bytes, not {type(payload).__name__}: encode it first")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(
            f"a payload of {len(payload):,} bytes is over the limit of {PAYLOAD_BYTES_MAX:,}: split it"
        )
