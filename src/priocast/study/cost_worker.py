"""One member of the cost study, as a process of its own: `python -m priocast.study.cost_worker`.

It broadcasts at a steady rate, with random priorities, until its parent ends its input: when all members have
what they need. So the load is the same until the last one has finished.
"""

import asyncio
import gc
import hashlib
import itertools
import random
import time

import msgspec

from priocast.core.events import Delivery
from priocast.core.priority import HIGHEST, LOWEST
from priocast.runtime.group import Group
from priocast.study.machine_load import busy_seconds, resident_bytes
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.study.step_times import ENTER, LEAVE, StepTimes, time_steps
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

NUMBER_BYTES = 4
_PROGRESS_SECONDS = 0.25
_MEMORY_SECONDS = 1.0


class CostTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one member; the first `dropped` of its `deliveries` are a warm-up."""

    rate: float
    deliveries: int
    dropped: int
    payload_bytes: int
    seed: str


class PartTimes(msgspec.Struct, frozen=True):
    """The steps in which messages entered, or left, the queue where priorities act."""

    counts: list[int]
    took_ns: list[int]


class MemorySamples(msgspec.Struct, frozen=True):
    """The resident memory of a member after the warm-up, and when it was read."""

    after_seconds: list[float]
    resident_bytes: list[int]


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What a member used after the warm-up. `machine_seconds` is the processor time of the whole machine."""

    seconds: float
    cpu_seconds: float
    machine_seconds: float
    collections: int
    memory_bytes: int
    memory_bytes_max: int


class CostReport(MemberProgress, frozen=True, kw_only=True):
    """The own messages of a member that it delivered, in its order; and its steps and resources."""

    took_ns: list[int] = msgspec.field(default_factory=list)
    positions: list[int] = msgspec.field(default_factory=list)
    priorities: list[int] = msgspec.field(default_factory=list)
    entered: PartTimes | None = None
    left: PartTimes | None = None
    resources: Resources | None = None
    memory: MemorySamples | None = None


class _Meter:
    """Reads clocks and counters when measuring begins and when it ends, and samples the memory between."""

    def __init__(self) -> None:
        self._begun = self._read()
        self.memory = MemorySamples([0.0], [resident_bytes()])

    @staticmethod
    def _read() -> tuple[float, float, float, int]:
        collections = sum(generation["collections"] for generation in gc.get_stats())
        return time.monotonic(), time.process_time(), busy_seconds(), collections

    def sample(self) -> None:
        """Look at the memory."""
        self.memory.after_seconds.append(time.monotonic() - self._begun[0])
        self.memory.resident_bytes.append(resident_bytes())

    def resources(self) -> Resources:
        """What was used since."""
        seconds, cpu, machine, collections = (
            end - begin for end, begin in zip(self._read(), self._begun, strict=True)
        )
        return Resources(
            seconds=seconds,
            cpu_seconds=cpu,
            machine_seconds=machine,
            collections=int(collections),
            memory_bytes=sum(self.memory.resident_bytes) // len(self.memory.resident_bytes),
            memory_bytes_max=max(self.memory.resident_bytes),
        )


class CostMember:
    """Sends and receives, and keeps the times of its own messages."""

    def __init__(self, task: CostTask, group: Group, steps: StepTimes) -> None:
        self._task = task
        self._group = group
        self._steps = steps
        self._sent_ns: list[int] = []
        self._sent_priorities: list[int] = []
        self._took_ns: list[int] = []
        self._positions: list[int] = []
        self._priorities: list[int] = []
        self._digest = hashlib.blake2b(digest_size=16)
        self._meter: _Meter | None = None
        self.delivered = 0

    @property
    def has_finished(self) -> bool:
        """Whether all deliveries that count are recorded."""
        return self.delivered >= self._task.deliveries

    async def send(self) -> None:
        """Broadcast at the rate, from a random phase on, until cancelled."""
        task, loop = self._task, asyncio.get_running_loop()
        rng = random.Random(f"{task.seed} {task.member}")  # noqa: S311 (seeded, not secret)
        padding = bytes(max(0, task.payload_bytes - NUMBER_BYTES))
        started = loop.time() + rng.random() / task.rate
        for number in itertools.count():
            await asyncio.sleep(started + number / task.rate - loop.time())
            priority = rng.randint(LOWEST, HIGHEST)
            self._sent_priorities.append(priority)
            self._sent_ns.append(time.monotonic_ns())
            await self._group.broadcast(number.to_bytes(NUMBER_BYTES) + padding, priority)

    async def receive(self) -> None:
        """Record the deliveries that count, report them, and consume what follows until cancelled."""
        async for event in self._group:
            if isinstance(event, Delivery):
                if not self.has_finished:
                    self._record(event, time.monotonic_ns())
                    if self.has_finished:
                        report(self._report())
            elif not self.has_finished:
                check_undisturbed(event)

    def _record(self, delivery: Delivery, now: int) -> None:
        task, message = self._task, delivery.message
        if self.delivered == task.dropped:
            self._meter = _Meter()
            self._steps.start()
        self.delivered += 1
        self._digest.update(f"{delivery.position} {message.id} ".encode())
        if message.sender == self._group.me:
            number = int.from_bytes(message.payload[:NUMBER_BYTES])
            self._took_ns.append(now - self._sent_ns[number])
            self._positions.append(delivery.position)
            self._priorities.append(self._sent_priorities[number])

    def _report(self) -> CostReport:
        assert self._meter is not None
        resources = self._meter.resources()
        self._steps.stop()
        entered, left = (
            PartTimes(self._steps.counts[part].tolist(), self._steps.took_ns[part].tolist())
            for part in (ENTER, LEAVE)
        )
        return CostReport(
            delivered=self.delivered,
            digest=self._digest.hexdigest(),
            took_ns=self._took_ns,
            positions=self._positions,
            priorities=self._priorities,
            entered=entered,
            left=left,
            resources=resources,
            memory=self._meter.memory,
        )

    async def report_progress(self) -> None:
        """Report how far this member is, until it has finished."""
        while not self.has_finished:
            report(MemberProgress(delivered=self.delivered))
            await asyncio.sleep(_PROGRESS_SECONDS)

    async def sample_memory(self) -> None:
        """Look at the memory once a second, until cancelled."""
        while True:
            await asyncio.sleep(_MEMORY_SECONDS)
            if self._meter is not None and not self.has_finished:
                self._meter.sample()


async def work(task: CostTask) -> None:
    """Take part in one run."""
    steps = time_steps(task.order)
    async with join_run(task, "cost") as group, asyncio.TaskGroup() as tasks:
        await wait_start()
        member = CostMember(task, group, steps)
        parts = (member.send(), member.receive(), member.report_progress(), member.sample_memory())
        running = [tasks.create_task(part) for part in parts]
        await read_line()
        for each in running:
            each.cancel()


if __name__ == "__main__":
    run_worker(CostTask, work)
