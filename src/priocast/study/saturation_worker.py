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

from priocast.core.events import Delivery
from priocast.runtime.group import Group
from priocast.study.machine_load import busy_seconds
from priocast.study.overload_worker import Handler
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.study.saturation import Deliveries, counted_period, rate_of
from priocast.study.workload import MIX
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

_DUE = struct.Struct("!qii")
_TICK_SECONDS = 0.002
_PROGRESS_SECONDS = 0.25
_SECOND_NS = 1_000_000_000
_SAMPLE_MAX = 20_000


class SaturationTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one member: `messages` in bursts, so far apart."""

    number: int
    members: int
    messages: int
    burst: int
    interval_ns: int
    payload_bytes: int
    handling_us: int
    seed: str


class SaturationReport(MemberProgress, frozen=True, kw_only=True):
    """The rate at which a member delivered, and a sample of its deliveries after the warm-up.

    `cpu_seconds` are its own, `machine_seconds` those of the whole machine, since the run began.
    """

    deliveries: Deliveries | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    machine_seconds: float = 0.0


class SaturationMember:
    """Sends and receives, and keeps the times of all deliveries."""

    def __init__(self, task: SaturationTask, group: Group) -> None:
        self._task = task
        self._group = group
        self._digest = hashlib.blake2b(digest_size=16)
        self._due_ns, self._delivered_ns = array("q"), array("q")
        self._priorities, self._senders = bytearray(), bytearray()
        self._begun = _read_clocks()

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
        begun = time.monotonic_ns() + round(rng.random() * task.interval_ns)
        for number, priority in enumerate(choices):
            due = begun + number // task.burst * task.interval_ns
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
        period = counted_period(zip(self._senders, self._due_ns, strict=True), self._task.interval_ns)
        counted = [index for index, due in enumerate(self._due_ns) if due in period]
        delivered = sum(each in period for each in self._delivered_ns)
        load = _SECOND_NS * self._task.burst * self._task.members / self._task.interval_ns
        rate = rate_of(load, delivered, len(counted))
        counted = counted[:: 1 + len(counted) // _SAMPLE_MAX]
        seconds, cpu_seconds, machine_seconds = (
            now - begun for now, begun in zip(_read_clocks(), self._begun, strict=True)
        )
        return SaturationReport(
            delivered=self.delivered,
            digest=self._digest.hexdigest(),
            deliveries=Deliveries(
                rate,
                [self._priorities[index] for index in counted],
                [self._delivered_ns[index] - self._due_ns[index] for index in counted],
            ),
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            machine_seconds=machine_seconds,
        )

    async def report_progress(self) -> None:
        """Report how far this member is, until cancelled."""
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            report(MemberProgress(delivered=self.delivered))


def _read_clocks() -> tuple[float, float, float]:
    """The time, the processor time of this process, and that of the whole machine."""
    return time.monotonic(), time.process_time(), busy_seconds()


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
