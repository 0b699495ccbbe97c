"""PySyncObj: a replicated method that every member applies, in the order of the raft log."""

import asyncio
import sys

from pysyncobj import SyncObj, SyncObjConf, replicated

from benchmarks.peers.member_loop import PeerClient, run_member

_READY_SECONDS = 60.0
_IN_FLIGHT_MAX = 1_000
_TICK_SECONDS = 0.001
_BATCH_TICK_SECONDS = 0.05


class _Log(SyncObj):  # type: ignore[misc]  # the package ships no types
    def __init__(self, member: "PySyncObjMember", own: str, others: list[str], batches: bool) -> None:
        self._member = member
        configuration = SyncObjConf(
            autoTickPeriod=_BATCH_TICK_SECONDS if batches else _TICK_SECONDS,
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
        own = self.addresses[self.rank]
        others = [each for each in self.addresses if each != own]
        self._log = _Log(self, own, others, self.batches)
        async with asyncio.timeout(_READY_SECONDS):
            while not self._log.isReady():
                await asyncio.sleep(0.01)

    def applied(self, payload: bytes) -> None:
        """Called in the thread of PySyncObj."""
        self._loop.call_soon_threadsafe(self.delivered, [payload])

    async def send(self, payload: bytes) -> None:
        await self._free.acquire()
        self._log.add(payload, callback=self._on_result)

    def _on_result(self, _result: object, _error: object) -> None:
        self._loop.call_soon_threadsafe(self._free.release)

    async def stop(self) -> None:
        self._log.destroy()


class PySyncObjBatches(PySyncObjMember):
    """The same with what its documentation recommends for many commands."""

    batches = True


if __name__ == "__main__":
    run_member(PySyncObjBatches if sys.argv.pop() == "batches" else PySyncObjMember)
