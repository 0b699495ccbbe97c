"""One sender of the study of adaptation, as a process of its own: `python -m priocast.study.adaptive_worker`.

It broadcasts at the given times, consumes at once what is delivered, and notes its weights from time to time.
"""

import asyncio
import hashlib
import time

import msgspec

from priocast.core.events import Delivery, ServiceDelivery
from priocast.core.priority import ROUTINE
from priocast.core.quality import parse_quality
from priocast.runtime.group import Group
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

_PROGRESS_SECONDS = 0.2


class SenderTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one sender: when it broadcasts (after the start), and how many messages all send.

    With a `quality` it sends them with that quality of service instead.
    """

    times_us: list[int]
    total: int
    payload_bytes: int
    quality: str = ""


class SlotSample(msgspec.Struct, frozen=True):
    """The weights that share the slots, by member, some seconds after the start."""

    second: float
    distribution: str
    weights: dict[str, int]


class SenderReport(MemberProgress, frozen=True, kw_only=True):
    """The progress of a sender, and the weights that it noted."""

    samples: list[SlotSample] = msgspec.field(default_factory=list)


class _Consumer:
    """Consumes what is delivered, and notes the weights whenever it reports."""

    def __init__(self, group: Group, total: int) -> None:
        self._group = group
        self._total = total
        self._started = time.monotonic()
        self._digest = hashlib.sha256()
        self._samples: list[SlotSample] = []
        self.delivered = 0

    async def run(self) -> None:
        async for event in self._group:
            if isinstance(event, Delivery):
                self._digest.update(f"{event.position} {event.message.id} ".encode())
                self.delivered += 1
            elif isinstance(event, ServiceDelivery):
                self.delivered += 1
            else:
                check_undisturbed(event)
            if self.delivered == self._total:
                return

    async def note(self) -> None:
        """Report and note for ever."""
        while True:
            slots = self._group.status().slots
            if slots is not None:
                second = time.monotonic() - self._started
                self._samples.append(SlotSample(second, slots.distribution, slots.weights))
            report(MemberProgress(delivered=self.delivered))
            await asyncio.sleep(_PROGRESS_SECONDS)

    def summary(self) -> SenderReport:
        return SenderReport(delivered=self.delivered, digest=self._digest.hexdigest(), samples=self._samples)


async def _send(group: Group, task: SenderTask) -> None:
    started = time.monotonic()
    payload = bytes(task.payload_bytes)
    for at_us in task.times_us:
        await asyncio.sleep(max(0.0, started + at_us / 1e6 - time.monotonic()))
        if task.quality:
            group.send_nowait(payload, quality=parse_quality(task.quality))
        else:
            await group.broadcast(payload, ROUTINE)


async def work(task: SenderTask) -> None:
    """Take part in one run."""
    async with join_run(task, "adaptive", slow_ms=60_000.0) as group, asyncio.TaskGroup() as tasks:
        await wait_start()
        consumer = _Consumer(group, task.total)
        noting = tasks.create_task(consumer.note())
        tasks.create_task(_send(group, task))
        await consumer.run()
        noting.cancel()
        report(consumer.summary())
        await read_line()


if __name__ == "__main__":
    run_worker(SenderTask, work)
