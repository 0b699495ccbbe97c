"""Copies of a replicated object at several members, for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import priocast
from support.groups import Cluster, quick

O = TypeVar("O", bound=priocast.ReplicatedObject)  # noqa: E741  # an object


@asynccontextmanager
async def copies(*objects: O, cluster: Cluster | None = None) -> AsyncIterator[list[O]]:
    """These objects as the copies of one, at members a, b, c."""
    cluster = cluster or Cluster("memory", "abc"[: len(objects)])
    entering = [
        priocast.replicate(
            "test", each, member=name, membership=quick(len(objects)), **cluster.arguments(name)
        )
        for name, each in zip(cluster.names, objects, strict=False)
    ]
    entered = await asyncio.gather(*(each.__aenter__() for each in entering))
    try:
        yield list(entered)
    finally:
        await asyncio.gather(*(each.__aexit__(None, None, None) for each in entering))
