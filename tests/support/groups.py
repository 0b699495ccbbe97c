"""Groups for tests: the same members over every network."""

import asyncio
import atexit
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, TypeVar

import priocast
from priocast.runtime.node import WithNode
from support.networks import NetworkFactory
from support.waiting import wait_until

NETWORKS = ("memory", "tcp", "tls", "udp")
NAMES = "abcdefgh"
QUICK = {"heartbeat_ms": 20.0, "failure_ms": 200.0}

_certificates = TemporaryDirectory(prefix="priocast-tests-")
atexit.register(_certificates.cleanup)


class Cluster:
    """The processes of one test: each has an address, and all know each other's.

    `arguments` are the network parameters of `priocast.join` and `priocast.open_node`.
    """

    def __init__(self, network: str, names: str) -> None:
        self.names = names
        self.factory = NetworkFactory(network, Path(mkdtemp(dir=_certificates.name)))

    @property
    def hub(self) -> priocast.MemoryHub:
        return self.factory.hub

    def arguments(self, name: str) -> dict[str, Any]:
        factory = self.factory
        if factory.kind == "memory":
            return {"hub": factory.hub, "size": len(self.names)}
        arguments: dict[str, Any] = {
            "listen": str(factory.address(name)),
            "peers": [str(factory.address(peer)) for peer in self.names if peer != name],
        }
        if factory.kind in {"tls", "certified"}:
            arguments["tls"] = factory.certificate(name)
        if factory.kind in {"udp", "certified"}:
            arguments |= {"transport": "udp", "keys": factory.keys}
        return arguments

    def join(self, name: str, group: str = "test", **options: Any) -> WithNode[priocast.Group]:
        """The context manager with which a process joins a group."""
        return priocast.join(group, member=name, **self.arguments(name), **options)

    def open(self, name: str, **options: Any) -> priocast.Node:
        """A process that may be in several groups."""
        return priocast.open_node(name, **self.arguments(name), **options)


def quick(founders: int, **options: Any) -> priocast.MembershipOptions:
    """Membership options for tests of failures: they are detected within 200 ms."""
    return priocast.MembershipOptions(founders=founders, **{**QUICK, **options})


def joinings(network: str, size: int, **options: Any) -> list[WithNode[priocast.Group]]:
    """The context managers with which `size` members form a group."""
    cluster = Cluster(network, NAMES[:size])
    return [cluster.join(name, **options) for name in cluster.names]


@asynccontextmanager
async def groups(network: str, size: int, **options: Any) -> AsyncIterator[list[priocast.Group]]:
    """A whole group, one `Group` for each member; all leave together."""
    async with entered(*joinings(network, size, incarnation=1, **options)) as members:
        yield members


@asynccontextmanager
async def entered(*joinings: WithNode[priocast.Group]) -> AsyncIterator[list[priocast.Group]]:
    """Members that join together and leave together."""
    entering = [asyncio.create_task(_start(joining.__aenter__())) for joining in joinings]
    try:
        yield list(await asyncio.gather(*entering))
    finally:
        joined = [
            joining
            for joining, task in zip(joinings, entering, strict=True)
            if task.done() and not task.cancelled() and task.exception() is None
        ]
        await asyncio.gather(*(joining.__aexit__(None, None, None) for joining in joined))


async def _start(entering: Awaitable[priocast.Group]) -> priocast.Group:
    return await entering


class Reader:
    """Reads a group continuously, and records deliveries, views and other events."""

    def __init__(self, group: priocast.Group) -> None:
        self.group = group
        self.deliveries: list[priocast.Delivery] = []
        self.events: list[priocast.Event] = []
        self.ended: priocast.GroupClosed | None = None

    async def read(self) -> None:
        try:
            async for event in self.group:
                self.events.append(event)
                if isinstance(event, priocast.Delivery):
                    self.deliveries.append(event)
                    self.on_delivery(event)
        except priocast.GroupClosed as closed:
            self.ended = closed

    def on_delivery(self, delivery: priocast.Delivery) -> None:
        """Handle a message."""

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.message.payload for delivery in self.deliveries]

    @property
    def views(self) -> list[priocast.ViewChange]:
        return [event for event in self.events if isinstance(event, priocast.ViewChange)]

    @property
    def members(self) -> str:
        """The names of the members of the last view."""
        return "".join(member.name for member in self.views[-1].view.members) if self.views else ""

    async def wait_members(self, names: str) -> priocast.ViewChange:
        """Wait until the view has these members."""
        await wait_until(lambda: self.members == names, lambda: f"{self.members} instead of {names}")
        return self.views[-1]

    async def wait_payloads(self, *payloads: bytes) -> None:
        """Wait until all of these were delivered."""
        await wait_until(lambda: {*payloads} <= {*self.payloads}, lambda: f"{self.payloads}")


R = TypeVar("R", bound=Reader)


@asynccontextmanager
async def reading(*members: priocast.Group) -> AsyncIterator[list[Reader]]:
    """Read groups in the background."""
    async with reading_with(Reader, *members) as readers:
        yield readers


@asynccontextmanager
async def reading_with(
    made: Callable[[priocast.Group], R], *members: priocast.Group
) -> AsyncIterator[list[R]]:
    """Read groups in the background, each with its own reader from this factory."""
    readers = [made(group) for group in members]
    async with AsyncExitStack() as stack:
        for reader in readers:
            task = asyncio.create_task(reader.read())
            stack.push_async_callback(_end, task)
        yield readers


async def _end(task: "asyncio.Task[None]") -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def take(group: priocast.Group, count: int) -> list[priocast.Delivery]:
    """The next `count` messages."""
    deliveries: list[priocast.Delivery] = []
    async for event in group:
        if isinstance(event, priocast.Delivery):
            deliveries.append(event)
            if len(deliveries) == count:
                break
    return deliveries


def ids(deliveries: list[priocast.Delivery]) -> list[str]:
    """The ids of the messages, in order."""
    return [str(delivery.message.id) for delivery in deliveries]
