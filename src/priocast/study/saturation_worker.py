"""One member of the saturation study, as a process of its own: `python -m priocast.study.saturation_worker`.

It broadcasts at a fixed rate, whether or not the group keeps up. A message counts from the time at which it
was due, which is in its payload: all members are on one machine and have the same clock.
"""

import asyncio
import hashlib
import random
import struct
import time
from array import array

import msgspec

from priocast.core.events import Delivery
from priocast.runtime.group import Group
from priocast.study.overload_worker import Handler
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.study.saturation import counted_period
from priocast.study.workload import MIX
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

_DUE = struct.Struct("!qii")
_TICK_SECONDS = 0.002
_PROGRESS_SECONDS = 0.25
_SECOND_NS = 1_000_000_000
_SAMPLE_MAX = 20_000


class SaturationTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one member: `messages` in bursts, at `rate` messages per second."""

    number: int
    members: int
    messages: int
    rate: float
    burst: int
    payload_bytes: int
    handling_us: int
    seed: str


class SaturationReport(MemberProgress, frozen=True, kw_only=True):
    """The rate at which a member delivered, and a sample of its deliveries after the warm-up."""

    delivered_per_second: float = 0.0
    priorities: list[int] = msgspec.field(default_factory=list)
    took_ns: list[int] = msgspec.field(default_factory=list)


class SaturationMember:
    """Sends and receives, and keeps the times of all deliveries."""

    def __init__(self, task: SaturationTask, group: Group) -> None:
        self._task = task
        self._group = group
        self._digest = hashlib.blake2b(digest_size=16)
        self._due_ns, self._delivered_ns = array("q"), array("q")
        self._priorities, self._senders = bytearray(), bytearray()

    @property
    def delivered(self) -> int:
        """How many messages were delivered."""
        return len(self._due_ns)

    async def send(self) -> None:
        """Broadcast all messages when they are due, or as soon as there is room."""
        task = self._task
        rng = random.Random(f"{task.seed} {task.member}")  # noqa: S311 (seeded, not secret)
        choices = rng.choices(list(MIX), weights=list(MIX.values()), k=task.messages)
        padding = bytes(task.payload_bytes - _DUE.size)
        interval_ns = round(_SECOND_NS * task.burst / task.rate)
        begun = time.monotonic_ns() + round(rng.random() * interval_ns)
        for number, priority in enumerate(choices):
            due = begun + number // task.burst * interval_ns
            while (now := time.monotonic_ns()) < due:
                await asyncio.sleep(max(_TICK_SECONDS, (due - now) / _SECOND_NS))
            await self._group.broadcast(_DUE.pack(due, task.number, number) + padding, priority)

    async def receive(self) -> None:
        """Take all messages."""
        task = self._task
        handler = Handler(task.handling_us) if task.handling_us else None
        async for event in self._group:
            if isinstance(event, Delivery):
                self._record(event)
                if handler is not None:
                    await handler.handle(event)
                if self.delivered == task.messages * task.members:
                    return
            else:
                check_undisturbed(event)

    def _record(self, delivery: Delivery) -> None:
        message = delivery.message
        self._digest.update(message.payload[: _DUE.size])
        due_ns, sender, _ = _DUE.unpack_from(message.payload)
        self._due_ns.append(due_ns)
        self._senders.append(sender)
        self._delivered_ns.append(time.monotonic_ns())
        self._priorities.append(message.priority)

    def summary(self) -> SaturationReport:
        """The final report."""
        counted_from, ended = counted_period(zip(self._senders, self._due_ns, strict=True))
        delivered = sum(counted_from <= each <= ended for each in self._delivered_ns)
        counted = [index for index, due in enumerate(self._due_ns) if counted_from <= due <= ended]
        counted = counted[:: 1 + len(counted) // _SAMPLE_MAX]
        return SaturationReport(
            delivered=self.delivered,
            digest=self._digest.hexdigest(),
            delivered_per_second=delivered * _SECOND_NS / max(1, ended - counted_from),
            priorities=[self._priorities[index] for index in counted],
            took_ns=[self._delivered_ns[index] - self._due_ns[index] for index in counted],
        )

    async def report_progress(self) -> None:
        """Report how far this member is, until cancelled."""
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            report(MemberProgress(delivered=self.delivered))


async def work(task: SaturationTask) -> None:
    """Take part in one run."""
    async with join_run(task, "saturation") as group, asyncio.TaskGroup() as tasks:
        await wait_start()
        member = SaturationMember(task, group)
        reporting = tasks.create_task(member.report_progress())
        tasks.create_task(member.send())
        await member.receive()
        reporting.cancel()
        report(member.summary())
        await read_line()


if __name__ == "__main__":
    run_worker(SaturationTask, work)
