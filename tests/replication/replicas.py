"""Replicas for tests: a state machine that records everything, and groups of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec

from priocast.replication.opening import open_replica
from priocast.replication.replica import Replica
from priocast.replication.state_machine import Applied, Continue
from support.groups import Cluster, quick


class Notes:
    """A state machine: a command is appended and counted.

    `fail …` raises an exception, `long N` takes N slots, `disk` fails as a full disk does.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.restored = 0

    def apply(self, command: bytes, at: Applied) -> bytes | Continue:
        text = command.decode()
        word, _, rest = text.partition(" ")
        if word == "fail":
            raise ValueError(rest)
        if word == "disk":
            raise OSError(28, "No space left on device")
        self.lines.append(text)
        if word == "long" and int(rest) > 1:
            return Continue(f"long {int(rest) - 1}".encode())
        return str(len(self.lines)).encode()

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.lines)

    def restore(self, data: bytes) -> None:
        self.restored += 1
        self.lines = msgspec.msgpack.decode(data, type=list[str])


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
