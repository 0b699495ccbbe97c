"""The log of one replica: what changes its state is recorded, and replayed when it starts again."""

import asyncio
import logging
import os
import threading
from contextlib import suppress

from priocast.core.errors import DamagedLog
from priocast.log.directory import LogDirectory
from priocast.log.entries import LogEntry
from priocast.log.ordered_log import OrderedLog, UnwrittenRecords
from priocast.replication.replicated_state import ReplicatedState

log = logging.getLogger("priocast.replica")

ENTRIES_MAX = 100_000
QUIET_SECONDS = 0.5
_SALT_BYTES = 8


class StateLog:
    """Records a state; `durable` is the index before which everything is on disk.

    `is_damaged`: the log could not be read. The replica begins without a state then, and receives one.
    """

    def __init__(self, directory: LogDirectory, group: str, member: str) -> None:
        self.is_damaged = False
        self._log = OrderedLog(directory, group, member, os.urandom(_SALT_BYTES))
        self._unsynced = asyncio.Event()
        self._awaited = asyncio.Event()
        self._files = threading.Lock()

    @property
    def durable(self) -> int:
        """The entries below this index survive a power failure."""
        return self._log.durable

    @property
    def promised(self) -> int:
        """The last generation that this member took part in."""
        return self._log.promised

    @property
    def salt(self) -> bytes:
        """Random bytes that no other log has."""
        return self._log.salt

    def promise(self, generation: int) -> None:
        """This member takes part in a generation, and in no other of that number; durable at once."""
        with self._files:
            self._log.promise(generation)

    def recover(self, state: ReplicatedState) -> None:
        """Bring a state that is new to where the log ends, and record it from then on."""
        try:
            entries = self._log.recover()
        except DamagedLog as error:
            log.error("%s; this replica begins with the state of the others", error)
            self.is_damaged = True
        else:
            if self._log.snapshot is not None:
                state.load(self._log.snapshot)
            for entry in entries:
                state.replay(entry)
            assert state.index == self._log.next, "the log has everything that changed the state"
        state.recorder = self

    def on_entry(self, entry: LogEntry, is_awaited: bool) -> None:
        """An entry changes the state now. If no answer waits for it, it is synced with the next ones."""
        if not self.is_damaged:
            self._log.append(entry)
            self._unsynced.set()
            if is_awaited:
                self._awaited.set()

    def on_state(self, index: int, data: bytes) -> None:
        """The state is replaced by one of another replica."""
        with self._files:
            self._log.reset(index, data)
        self.is_damaged = False

    def bodies_since(self, index: int) -> list[bytes] | None:
        """The encoded entries from an index on; None if they are not all there any more."""
        if self.is_damaged:
            return None
        with self._files:
            return self._log.bodies_since(index)

    async def sync(self, state: ReplicatedState) -> bool:
        """Wait until there is something to sync, and sync it, with everything that comes meanwhile.

        Entries that no answer waits for are synced when others come, or after a while. Returns whether there
        were others.
        """
        await self._unsynced.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS):
                await self._awaited.wait()
        is_awaited = self._awaited.is_set()
        self._awaited.clear()
        self._unsynced.clear()
        if self._log.next - self._log.first >= ENTRIES_MAX and state.reports is None:
            with self._files:
                self._log.save_snapshot(state.save())
        else:
            await asyncio.to_thread(self._write, self._log.take())
        return is_awaited

    def _write(self, unwritten: UnwrittenRecords) -> None:
        with self._files:
            self._log.write(unwritten)

    def close(self) -> None:
        """Let another process use the log."""
        with self._files:
            self._log.close()
