"""PySyncObj: a replicated method that every member applies, in the order of the raft log."""

import asyncio
import sys
from collections import deque
from typing import Any, TypeVar

from pysyncobj import SyncObj, SyncObjConf, replicated

from benchmarks.peers.member_loop import PeerClient, run_member

Item = TypeVar("Item")

_READY_SECONDS = 60.0
_IN_FLIGHT_MAX = 1_000
_TICK_SECONDS = 0.001
#: How long a leader collects commands, and how long a member's thread waits for something to do. With the
#: defaults, 100 and 50 ms, all wait for the leader when 1,000 commands of each member are in flight.
_BATCH_SECONDS = 0.01


class _Log(SyncObj):  # type: ignore[misc]  # the package ships no types
    def __init__(self, member: "PySyncObjMember", own: str, others: list[str], batches: bool) -> None:
        self._member = member
        periods: dict[str, Any] = {"autoTickPeriod": _TICK_SECONDS}
        if batches:
            periods = {"autoTickPeriod": _BATCH_SECONDS, "appendEntriesPeriod": _BATCH_SECONDS}
        configuration = SyncObjConf(
            **periods,
            appendEntriesUseBatch=batches,
            commandsQueueSize=1_000_000,
            logCompactionMinEntries=100_000_000,
            logCompactionMinTime=100_000_000,
        )
        super().__init__(own, others, conf=configuration)

    @replicated  # type: ignore[untyped-decorator]  # the package ships no types
    def add(self, payload: bytes) -> None:
        self._member.applied(payload)


class PySyncObjMember(PeerClient):
    """One member; PySyncObj works in a thread of its own."""

    batches = False

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._free = asyncio.Semaphore(_IN_FLIGHT_MAX)
        self._applied: deque[bytes] = deque()
        self._answered: deque[None] = deque()
        own = self.addresses[self.rank]
        others = [each for each in self.addresses if each != own]
        self._log = _Log(self, own, others, self.batches)
        async with asyncio.timeout(_READY_SECONDS):
            while not self._log.isReady():
                await asyncio.sleep(0.01)

    def applied(self, payload: bytes) -> None:
        """Called in the thread of PySyncObj; the event loop is woken once for what is applied meanwhile."""
        self._applied.append(payload)
        if len(self._applied) == 1:
            self._loop.call_soon_threadsafe(self._deliver_applied)

    def _deliver_applied(self) -> None:
        self.delivered(_drained(self._applied))

    async def send(self, payload: bytes) -> None:
        await self._free.acquire()
        self._log.add(payload, callback=self._on_result)

    def _on_result(self, _result: object, _error: object) -> None:
        self._answered.append(None)
        if len(self._answered) == 1:
            self._loop.call_soon_threadsafe(self._release_answered)

    def _release_answered(self) -> None:
        for _ in _drained(self._answered):
            self._free.release()

    async def stop(self) -> None:
        self._log.destroy()


def _drained(waiting: deque[Item]) -> list[Item]:
    """What waits. The other thread goes on adding; it wakes the event loop when nothing else waited."""
    drained: list[Item] = []
    while waiting:
        drained.append(waiting.popleft())
    return drained


class PySyncObjBatches(PySyncObjMember):
    """The same with what its documentation recommends for many commands."""

    batches = True


if __name__ == "__main__":
    run_member(PySyncObjBatches if sys.argv.pop() == "batches" else PySyncObjMember)
