"""One replica of the drill, as a process of its own: `python -m priocast.study.preemption_worker`.

It broadcasts routine commands, and executes delivered commands one by one, each for the same time. One
replica broadcasts an urgent command while it executes another one. Commands after the urgent one take no
time: they are not measured.
"""

import asyncio
import hashlib
import time

import msgspec

from priocast.core.events import Delivery
from priocast.core.priority import ROUTINE, URGENT
from priocast.runtime.group import Group
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

_SLOW_MS = 60_000.0


class PreemptionTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one replica: `commands` are its own, `total` is the count of all, with the urgent one.

    `urgent_during` is the command during which it broadcasts the urgent one (0: another replica does).
    """

    commands: int
    total: int
    handling_ms: float
    urgent_during: int


class PreemptionReport(MemberProgress, frozen=True, kw_only=True):
    """The start of each command, in order (monotonic clock, ns), and the index of the urgent one.

    `longest_stall_ms` is how long queued commands waited until the urgent one had its position.
    """

    begun_ns: list[int] = msgspec.field(default_factory=list)
    urgent: int = 0
    sent_ns: int = 0
    longest_stall_ms: float = 0.0


class PreemptionReplica:
    """Executes commands."""

    def __init__(self, task: PreemptionTask, group: Group) -> None:
        self._task = task
        self._group = group
        self._handling = task.handling_ms / 1000
        self._begun: list[int] = []
        self._urgent: int | None = None
        self._sent = 0
        self._digest = hashlib.sha256()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Execute all commands."""
        async for event in self._group:
            if isinstance(event, Delivery):
                await self._execute(event, tasks)
                if len(self._begun) == self._task.total:
                    return
            else:
                check_undisturbed(event)

    async def _execute(self, delivery: Delivery, tasks: asyncio.TaskGroup) -> None:
        message = delivery.message
        self._begun.append(time.monotonic_ns())
        self._digest.update(f"{delivery.position} {message.id} ".encode() + message.payload)
        if message.priority == URGENT:
            self._urgent = len(self._begun) - 1
        if len(self._begun) == self._task.urgent_during:
            tasks.create_task(self._broadcast_urgent())
        if self._urgent is None:
            report(MemberProgress(delivered=len(self._begun)))
            await asyncio.sleep(self._handling)

    async def _broadcast_urgent(self) -> None:
        await asyncio.sleep(self._handling / 2)
        self._sent = time.monotonic_ns()
        await self._group.broadcast(b"stop", URGENT)

    def summary(self) -> PreemptionReport:
        """The final report."""
        assert self._urgent is not None, "the urgent command is one of all"
        return PreemptionReport(
            delivered=len(self._begun),
            digest=self._digest.hexdigest(),
            begun_ns=self._begun,
            urgent=self._urgent,
            sent_ns=self._sent,
            longest_stall_ms=self._group.status().stalls.longest_ms,
        )


async def work(task: PreemptionTask) -> None:
    """Take part in one run."""
    joining = join_run(task, "preemption", _SLOW_MS)
    async with joining as group, asyncio.TaskGroup() as tasks:
        replica = PreemptionReplica(task, group)
        await wait_start()
        if task.commands:
            await group.broadcast_many([b"step"] * task.commands, ROUTINE)
        await replica.run(tasks)
        report(replica.summary())
        await read_line()


if __name__ == "__main__":
    run_worker(PreemptionTask, work)
