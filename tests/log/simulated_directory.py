"""A file system in memory that loses what was not synced when the power fails, and that can break."""

import errno
import threading
import time
from random import Random


class SimulatedFile:
    """A file: what is on the disk, and what was written since."""

    def __init__(self, content: bytes = b"", is_named: bool = False) -> None:
        self.synced = content
        self.unsynced = b""
        self.is_named = is_named

    @property
    def content(self) -> bytes:
        return self.synced + self.unsynced


class SimulatedDirectory:
    """A directory whose power can fail. `fails_on` names an operation that raises an error from now on.

    `free_bytes`: how much room there is, if it is limited; what does not fit is written in part.
    """

    def __init__(self) -> None:
        self.files: dict[str, SimulatedFile] = {}
        self.removed: dict[str, SimulatedFile] = {}
        self.fails_on = ""
        self.free_bytes: int | None = None
        self.syncs = 0
        self.sync_seconds = 0.0
        self._has_power = True
        self._files = threading.Lock()
        self._may_sync = threading.Event()
        self._may_sync.set()

    def copy(self) -> "SimulatedDirectory":
        """The same disk at one moment, whatever another thread is writing."""
        with self._files:
            return self._copied()

    def cut_power(self, random: Random) -> "SimulatedDirectory":
        """What a member finds when it is started again. Whoever still uses this disk writes nothing more.

        Both happen at one moment: what is synced after it must not be acknowledged.
        """
        with self._files:
            found = self._copied()
            self._has_power = False
        self.release_syncs()
        found.fail_power(random)
        return found

    def _copied(self) -> "SimulatedDirectory":
        other = SimulatedDirectory()
        other.sync_seconds = self.sync_seconds
        for name, file in self.files.items():
            other.files[name] = SimulatedFile(file.synced, file.is_named)
            other.files[name].unsynced = file.unsynced
        other.removed = dict(self.removed)
        return other

    @property
    def synced(self) -> bytes:
        """What all files together have on the disk, whatever another thread is writing."""
        with self._files:
            return b"".join(file.synced for file in self.files.values())

    def hold_syncs(self) -> None:
        """Let no append and no sync begin, until they are released or the power fails."""
        self._may_sync.clear()

    def release_syncs(self) -> None:
        self._may_sync.set()

    def fail_power(self, random: Random) -> None:
        """Forget what was not synced: all, or a part, or garbage follows it; removed files may be back."""
        for name, file in list(self.removed.items()):
            if name not in self.files and random.random() < 0.5:
                self.files[name] = file
        self.removed.clear()
        for name, file in list(self.files.items()):
            if not file.is_named and random.random() < 0.5:
                del self.files[name]
                continue
            kept = random.randint(0, len(file.unsynced))
            lost = len(file.unsynced) - kept
            garbage = random.choice([b"", bytes(lost), random.randbytes(random.randint(0, lost))])
            file.synced += file.unsynced[:kept] + garbage
            file.unsynced, file.is_named = b"", True

    def _check(self, operation: str) -> None:
        if operation == self.fails_on or not self._has_power:
            raise OSError(errno.EIO, "Input/output error")

    def _reserve(self, size: int) -> int:
        if self.free_bytes is None:
            return size
        fits = min(size, self.free_bytes)
        self.free_bytes -= fits
        return fits

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        self._check("read")
        return self.files[name].content

    def append(self, name: str, data: bytes) -> None:
        self._may_sync.wait()
        with self._files:
            self._check("append")
            fits = self._reserve(len(data))
            self.files.setdefault(name, SimulatedFile()).unsynced += data[:fits]
            if fits < len(data):
                raise OSError(errno.ENOSPC, "No space left on device")

    def sync(self, name: str) -> None:
        time.sleep(self.sync_seconds)
        with self._files:
            self._check("sync")
            self.syncs += 1
            file = self.files[name]
            file.synced, file.unsynced, file.is_named = file.content, b"", True

    def replace(self, name: str, data: bytes) -> None:
        with self._files:
            self._check("replace")
            if self._reserve(len(data)) < len(data):
                raise OSError(errno.ENOSPC, "No space left on device")
            self.files[name] = SimulatedFile(data, is_named=True)

    def truncate(self, name: str, size: int) -> None:
        with self._files:
            self.files[name] = SimulatedFile(self.files[name].content[:size], is_named=True)

    def remove(self, name: str) -> None:
        with self._files:
            self.removed[name] = self.files.pop(name)

    def close(self) -> None:
        """Nothing is locked."""
