"""Nodes of one process for the tests of operations: groups that really live, on a hub."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import priocast
from priocast.runtime.node import Node

QUICK = priocast.MembershipOptions(founders=1, heartbeat_ms=20, failure_ms=200)


@asynccontextmanager
async def nodes(size: int, *groups: str, **options: Any) -> AsyncIterator[list[Node]]:
    """Nodes on one hub that are in the same groups; nobody takes messages, and none leaves in good order."""
    hub = priocast.MemoryHub()
    async with AsyncExitStack() as stack:
        made = [
            await stack.enter_async_context(priocast.open_node(name, hub=hub, size=size))
            for name in "abcdef"[:size]
        ]
        options = {"membership": QUICK, "founders": size, **options}
        joinings = [node.join(group, **options) for node in made for group in groups]
        await asyncio.gather(*(joining.__aenter__() for joining in joinings))
        for joining in joinings:
            stack.push_async_callback(joining.__aexit__, RuntimeError, RuntimeError(), None)
        yield made


async def wait_until(condition: Callable[[], bool], timeout_seconds: float = 10) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(timeout_seconds):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Callable[[], Awaitable[None]], timeout_seconds: float = 20) -> None:
    """Run a test in an event loop of its own, and not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(timeout_seconds):
            await test()

    asyncio.run(bounded())
