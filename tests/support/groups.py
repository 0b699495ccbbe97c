"""Groups for tests: the same members over every network there is."""

import asyncio
import atexit
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, TypeVar

import priocast
from priocast.runtime.node import WithNode
from support.networks import Site
from support.waiting import wait_until

NETWORKS = ("memory", "tcp", "tls", "udp")
NAMES = "abcdefgh"
QUICK = {"heartbeat_ms": 20.0, "failure_ms": 200.0}

_certificates = TemporaryDirectory(prefix="priocast-tests-")
atexit.register(_certificates.cleanup)


class Town:
    """Where the processes of one test are: each has an address, and all know each other's.

    `arguments` is what `priocast.join` and `priocast.open_node` have to be told about the network.
    """

    def __init__(self, network: str, names: str) -> None:
        self.names = names
        self.site = Site(network, Path(mkdtemp(dir=_certificates.name)))

    @property
    def hub(self) -> priocast.MemoryHub:
        return self.site.hub

    def arguments(self, name: str) -> dict[str, Any]:
        site = self.site
        if site.kind == "memory":
            return {"hub": site.hub, "size": len(self.names)}
        arguments: dict[str, Any] = {
            "listen": str(site.address(name)),
            "peers": [str(site.address(peer)) for peer in self.names if peer != name],
        }
        if site.kind == "tls":
            arguments["tls"] = site.certificate(name)
        if site.kind == "udp":
            arguments |= {"transport": "udp", "keys": site.keys}
        return arguments

    def join(self, name: str, group: str = "test", **options: Any) -> WithNode[priocast.Group]:
        """What a process has to enter to be in a group."""
        return priocast.join(group, member=name, **self.arguments(name), **options)

    def open(self, name: str, **options: Any) -> priocast.Node:
        """A process that may be in many groups."""
        return priocast.open_node(name, **self.arguments(name), **options)


def quick(founders: int, **options: Any) -> priocast.MembershipOptions:
    """Membership for tests that await a failure: it is found in a fifth of a second."""
    return priocast.MembershipOptions(founders=founders, **{**QUICK, **options})


def joinings(network: str, size: int, **options: Any) -> list[WithNode[priocast.Group]]:
    """What `size` members have to enter to form a group."""
    town = Town(network, NAMES[:size])
    return [town.join(name, **options) for name in town.names]


@asynccontextmanager
async def groups(network: str, size: int, **options: Any) -> AsyncIterator[list[priocast.Group]]:
    """A whole group, seen by each of its members; all leave together."""
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
    """Reads a group all the while: what was delivered, and which views and other events there were."""

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
        """What the application does with a message."""

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
    """Read groups in the background, each with a reader of its own that is made for it."""
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
    """Which messages, in which order."""
    return [str(delivery.message.id) for delivery in deliveries]
