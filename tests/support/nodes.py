"""Real groups for the tests of operations: all nodes in one process, connected by a memory hub."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import priocast
from priocast.runtime.node import Node

QUICK = priocast.MembershipOptions(founders=1, heartbeat_ms=20, failure_ms=200)


@asynccontextmanager
async def nodes(size: int, *groups: str, **options: Any) -> AsyncIterator[list[Node]]:
    """Nodes on one hub, in the same groups. Nothing consumes their messages; they end without leaving."""
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
