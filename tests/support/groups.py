"""Groups for tests: the same members over every network there is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import priocast
from priocast.runtime.group import Joining
from priocast.study.processes import free_ports

NETWORKS = ("memory", "tcp")
NAMES = "abcdefgh"


def joinings(network: str, size: int, **options: Any) -> list[Joining]:
    """What `size` members have to enter to form a group."""
    names = NAMES[:size]
    if network == "memory":
        hub = priocast.MemoryHub()
        return [priocast.join("test", member=name, hub=hub, size=size, **options) for name in names]
    addresses = [f"127.0.0.1:{port}" for port in free_ports(size)]
    return [
        priocast.join(
            "test",
            member=name,
            listen=address,
            peers=[peer for peer in addresses if peer != address],
            **options,
        )
        for name, address in zip(names, addresses, strict=True)
    ]


@asynccontextmanager
async def groups(network: str, size: int, **options: Any) -> AsyncIterator[list[priocast.Group]]:
    """A whole group, seen by each of its members; all leave together."""
    members = joinings(network, size, incarnation=1, **options)
    async with AsyncExitStack() as stack:
        entering = [joining.__aenter__() for joining in members]
        joined = await asyncio.gather(*entering)
        for joining in members:
            stack.push_async_exit(joining.__aexit__)
        yield list(joined)


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


def run(test: Callable[[], Awaitable[None]], timeout_seconds: float = 30) -> None:
    """Run a test in an event loop of its own, and not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(timeout_seconds):
            await test()

    asyncio.run(bounded())
