"""Replicas with logs on simulated disks, whose power can fail all at once."""

import asyncio
import re
from random import Random
from typing import Any

import pytest

import priocast
from log.simulated_directory import SimulatedDirectory, SimulatedFile
from priocast.replication.opening import _state_of
from priocast.replication.replica import Replica
from priocast.replication.state_log import StateLog
from replication.notes import Notes
from support.groups import QUICK
from support.waiting import PATIENCE_SECONDS, wait_until


class DurableReplicas:
    """Members with disks: they start together, and all of them stop when the power fails."""

    def __init__(self, names: str, seed: int = 1) -> None:
        self.names = names
        self.random = Random(seed)
        self.disks = {name: SimulatedDirectory() for name in names}
        self.running: dict[str, Replica[Notes]] = {}
        self.hub = priocast.MemoryHub()

    def __getitem__(self, name: str) -> Replica[Notes]:
        return self.running[name]

    async def start(self, *names: str, founders: int | None = None) -> None:
        """Start these members, all by default. The founders of a new group have it on their disks on return.

        Answers wait for a majority of the disks only, so a power cut could find the others still empty.
        """
        names = names or tuple(self.names)
        is_new_group = not any(self.disks[name].names() for name in self.names)
        replicas = [self._replica(name, founders or len(names)) for name in names]
        entered = await asyncio.gather(*(each.__aenter__() for each in replicas))
        self.running |= dict(zip(names, entered, strict=True))
        if is_new_group:
            await asyncio.gather(*(self.wait_synced(name) for name in names))

    def _replica(self, name: str, founders: int) -> Replica[Notes]:
        membership = priocast.MembershipOptions(founders=founders, **QUICK)  # type: ignore[arg-type]
        parameters: dict[str, Any] = {
            "membership": membership,
            "hub": self.hub,
            "size": founders,
            "leave_seconds": 0,
        }
        machine, disk = Notes(), self.disks[name]
        state = _state_of(machine, parameters, "disk")
        joining = priocast.join("test", member=name, **parameters)
        return Replica(joining, machine, state, lambda: StateLog(disk, "test", name))

    async def wait_synced(self, name: str) -> None:
        """Wait until a member's disk has everything that answers depend on: for them, others were enough."""
        replica = self.running[name]
        durability = replica._open.durability
        assert durability is not None
        await wait_until(lambda: durability._log.durable >= max(1, replica._state.index_to_sync))

    async def wait_unanswered(self, name: str, reason: str) -> None:
        """Wait until a member answers nothing for this reason; before, it waits for reports of the others."""

        async def is_unanswered() -> bool:
            with pytest.raises(priocast.DeadlineExceeded) as raised:
                await self.running[name].submit(b"unanswered", timeout_seconds=0.1)
            return bool(re.search(reason, str(raised.value)))

        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await is_unanswered():
                pass

    async def fail_power(self, *names: str) -> None:
        """Stop members at once, all by default, and forget what they had not synced."""
        names = names or tuple(self.running)
        for name in names:
            self.disks[name] = self.disks[name].cut_power(self.random)
        if len(names) == len(self.running):
            for name in names:
                for other in self.names.replace(name, ""):
                    self.hub.cut(name, other)
        stopping = [self.running.pop(name) for name in names]
        await asyncio.gather(*(each.__aexit__(None, None, None) for each in stopping), return_exceptions=True)
        if not self.running:
            self.hub = priocast.MemoryHub()

    async def lines(self) -> list[list[str]]:
        """What every member has, after a linearizable read there."""
        return [await each.read(lambda notes: list(notes.lines)) for each in self.running.values()]

    async def __aenter__(self) -> "DurableReplicas":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.running:
            await self.fail_power()


def flip(disk: SimulatedDirectory, kind: str, byte: int) -> None:
    """Damage a byte of every file of this kind on a disk.

    There are two logs on the disk of a replica that was behind when it started: the state of the others
    begins a new one, and the power may fail before the removal of the old one is on the disk.
    """
    names = [name for name in disk.names() if name.endswith(kind)]
    assert names, f"there is a file of the kind {kind}"
    for name in names:
        content = bytearray(disk.read(name))
        content[byte] ^= 1
        disk.files[name] = SimulatedFile(bytes(content), is_named=True)
