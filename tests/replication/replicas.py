"""Groups of replicas for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from priocast.replication.opening import open_replica
from priocast.replication.replica import Replica
from replication.notes import Notes
from support.groups import Cluster, quick


class Replicas:
    """Replicas of one group in this process, by name."""

    def __init__(self, names: str, **options: Any) -> None:
        self.cluster = Cluster("memory", names)
        self._options = options
        self._stack = AsyncExitStack()
        self.replicas: dict[str, Replica[Notes]] = {}

    def __getitem__(self, name: str) -> Replica[Notes]:
        return self.replicas[name]

    async def start(self, *names: str) -> None:
        """Have these members join together."""
        options = {"membership": quick(len(self.cluster.names)), **self._options}
        opened = [
            open_replica("test", Notes(), member=name, **self.cluster.arguments(name), **options)
            for name in names
        ]
        entered = await asyncio.gather(*(each.__aenter__() for each in opened))
        self.replicas |= dict(zip(names, entered, strict=True))

    def isolate(self, name: str) -> None:
        """Cut a member off from all others."""
        for other in self.cluster.names.replace(name, ""):
            self.cluster.hub.cut(name, other)
            self.cluster.hub.cut(other, name)

    def lines(self) -> list[list[str]]:
        return [replica.machine.lines for replica in self.replicas.values()]


@asynccontextmanager
async def replicated(names: str, **options: Any) -> AsyncIterator[Replicas]:
    """A group of replicas, all of them founders; they leave together."""
    replicas = Replicas(names, **options)
    await replicas.start(*names)
    try:
        yield replicas
    finally:
        await asyncio.gather(*(each.__aexit__(None, None, None) for each in replicas.replicas.values()))
