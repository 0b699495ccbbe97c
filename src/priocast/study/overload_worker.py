"""One member of an overload run, as a process of its own: `python -m priocast.study.overload_worker`.

It broadcasts at fixed rates, and handles each message that it delivers for a fixed time.
"""

import asyncio
import hashlib
import time
from collections import deque

from priocast.core.events import Delivery
from priocast.runtime.group import Group
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.study.workload import Workload
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

_TICK_SECONDS = 0.002
_PROGRESS_SECONDS = 0.1
# Event loops have a resolution of one millisecond: shorter handling times are added up before sleeping.
_SLEEP_SECONDS_MIN = 0.001
# A handler that was woken late while messages waited catches up, as one that never slept.
_CATCH_UP_SECONDS = 0.005
# If the next message takes longer than this, the queue was empty.
_IDLE_SECONDS = 0.0001


class OverloadTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one member."""

    workload: Workload


class OverloadProgress(MemberProgress, frozen=True, kw_only=True):
    """The progress of a member, and the 99th percentile of how late it was woken."""

    late_ms_p99: float = 0.0


class Handler:
    """Handles messages one by one, each for the same time, and measures how late it was woken."""

    def __init__(self, handling_us: int) -> None:
        self._handling = handling_us / 1_000_000
        self._free_at = self._asked_at = time.perf_counter()
        self._late: deque[float] = deque(maxlen=100_000)
        self._digest = hashlib.sha256()
        self.delivered = 0

    async def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        self._digest.update(f"{delivery.position} {message.id} ".encode() + message.payload)
        self.delivered += 1
        now = time.perf_counter()
        waited = now - self._asked_at < _IDLE_SECONDS
        self._free_at = max(self._free_at, now - _CATCH_UP_SECONDS if waited else now) + self._handling
        if self._free_at - now >= _SLEEP_SECONDS_MIN:
            await asyncio.sleep(self._free_at - now)
            self._late.append(max(0.0, time.perf_counter() - self._free_at))
        self._asked_at = time.perf_counter()

    def summary(self) -> OverloadProgress:
        """The final report."""
        late = sorted(self._late)
        p99 = late[len(late) * 99 // 100] * 1000 if late else 0.0
        return OverloadProgress(delivered=self.delivered, digest=self._digest.hexdigest(), late_ms_p99=p99)


async def _send(group: Group, priority: int, count: int, seconds: float, payload: bytes) -> None:
    """Broadcast `count` messages at a fixed rate, whether or not the group keeps up."""
    started = time.perf_counter()
    sent = 0
    while sent < count:
        await asyncio.sleep(_TICK_SECONDS)
        due = min(count, int(count * (time.perf_counter() - started) / seconds))
        for _ in range(sent, due):
            await group.broadcast(payload, priority)
        sent = max(sent, due)


async def _consume(group: Group, handler: Handler, total: int) -> None:
    async for event in group:
        if isinstance(event, Delivery):
            await handler.handle(event)
            if handler.delivered == total:
                return
        else:
            check_undisturbed(event)


async def _report(handler: Handler) -> None:
    while True:
        await asyncio.sleep(_PROGRESS_SECONDS)
        report(MemberProgress(delivered=handler.delivered))


async def work(task: OverloadTask) -> None:
    """Take part in one run."""
    workload = task.workload
    payload = bytes(workload.payload_bytes)
    handler = Handler(workload.handling_us)
    joining = join_run(task, "demo")
    async with joining as group, asyncio.TaskGroup() as tasks:
        await wait_start()
        reporting = tasks.create_task(_report(handler))
        for priority, count in workload.counts.items():
            tasks.create_task(_send(group, priority, count, workload.seconds, payload))
        await _consume(group, handler, workload.total)
        reporting.cancel()
        report(handler.summary())
        await read_line()


if __name__ == "__main__":
    run_worker(OverloadTask, work)
