"""Power cuts of all members in the middle of their work, again and again, on simulated disks.

Before each cut a majority or all members start, one may be killed or join late, and all work. What is not
synced when the power fails is lost, in part or as a whole, or garbage. Everything that was answered must be
there afterwards, once, and at all members alike.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from unittest.mock import patch

import priocast
from priocast.replication import state_log
from replication.durable_replicas import DurableReplicas
from support.waiting import wait_until

_SYNC_SECONDS_MAX = 0.003
_COMMANDS_MAX = 200
_ENTRIES_MAX = 200


class PowerCuts:
    """One campaign; `answered` are the commands whose results were returned."""

    def __init__(self, replicas: DurableReplicas) -> None:
        self.answered: set[str] = set()
        self._replicas = replicas
        self._submitted = 0

    async def run(self, count: int, advance: Callable[[], None]) -> None:
        """Cut the power so often, and judge what is there each time."""
        with patch.object(state_log, "ENTRIES_MAX", _ENTRIES_MAX):
            for _ in range(count):
                await self._round()
                advance()
            await self._replicas.start()
            await self._judge()

    async def _round(self) -> None:
        replicas, random = self._replicas, self._replicas.random
        for disk in replicas.disks.values():
            disk.sync_seconds = random.random() * _SYNC_SECONDS_MAX
        first = random.choice(["abc", "abc", "ab", "bc", "ac"]) if self._submitted else replicas.names
        await replicas.start(*first)
        await self._judge()
        tasks = [asyncio.create_task(self._work(name)) for name in first]
        late = [name for name in replicas.names if name not in first]
        if late and random.random() < 0.5:
            await replicas.start(*late, founders=len(first))
        elif not late and random.random() < 0.3:
            await replicas.fail_power(random.choice(first))
        enough = len(self.answered) + random.randint(1, 30)
        await wait_until(lambda: len(self.answered) >= enough)
        await replicas.fail_power()
        await asyncio.gather(*tasks)

    async def _work(self, name: str) -> None:
        first, self._submitted = self._submitted, self._submitted + _COMMANDS_MAX
        with suppress(priocast.GroupClosed, KeyError):
            for number in range(first, first + _COMMANDS_MAX):
                await self._replicas[name].submit(f"{name} {number}".encode())
                self.answered.add(f"{name} {number}")

    async def _judge(self) -> None:
        first, *others = await self._replicas.lines()
        assert all(each == first for each in others), "the copies differ"
        assert len(first) == len(set(first)), "a command was applied twice"
        lost = self.answered - set(first)
        assert not lost, f"answered, and lost: {sorted(lost)[:5]}"


async def cut_power(count: int, seed: int, advance: Callable[[], None] = lambda: None) -> int:
    """Cut the power so often; return how many commands were answered in all."""
    async with DurableReplicas("abc", seed) as replicas:
        cuts = PowerCuts(replicas)
        await cuts.run(count, advance)
        return len(cuts.answered)
