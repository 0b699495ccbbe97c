"""A directory of a real file system, which one process writes at a time; others may read it."""

import errno
import os
from pathlib import Path

from priocast.core.errors import UnusableLog

_LOCK = "lock"
_ASIDE = ".part"


class ReadOnlyDirectory:
    """The files of a log that another process may be writing, as they are now.

    What recovery would cut or remove is left as it is: it does not count.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        return sorted(
            entry.name
            for entry in self._path.iterdir()
            if entry.name != _LOCK and not entry.name.endswith(_ASIDE)
        )

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def append(self, name: str, data: bytes) -> None:
        raise PermissionError(errno.EROFS, "the log is only read")

    def sync(self, name: str) -> None:
        """Nothing was written."""

    def replace(self, name: str, data: bytes) -> None:
        raise PermissionError(errno.EROFS, "the log is only read")

    def truncate(self, name: str, size: int) -> None:
        """Nothing is cut."""

    def remove(self, name: str) -> None:
        """Nothing is removed."""

    def close(self) -> None:
        """Nothing is open."""


class DiskDirectory(ReadOnlyDirectory):
    """A directory to write to; raises UnusableLog if another process uses it, or it cannot be made."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            import fcntl
        except ImportError:
            raise UnusableLog("a durable log needs the file locks of Unix, which this system lacks") from None
        self._open: dict[str, int] = {}
        self._unsynced_names: set[str] = set()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UnusableLog(f"cannot keep a log in {path}: {error.strerror or error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise UnusableLog(f"another process uses the log in {path}: stop it first") from None

    def append(self, name: str, data: bytes) -> None:
        descriptor = self._open.get(name)
        if descriptor is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            if not (self._path / name).exists():
                self._unsynced_names.add(name)
            descriptor = self._open[name] = os.open(self._path / name, flags, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, name: str) -> None:
        os.fdatasync(self._open[name])
        if name in self._unsynced_names:
            self._sync_names()

    def replace(self, name: str, data: bytes) -> None:
        aside = self._path / f"{name}{_ASIDE}"
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._path / name)
        self._sync_names()

    def truncate(self, name: str, size: int) -> None:
        self._close_file(name)
        with (self._path / name).open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def remove(self, name: str) -> None:
        self._close_file(name)
        (self._path / name).unlink(missing_ok=True)

    def close(self) -> None:
        for name in list(self._open):
            self._close_file(name)
        os.close(self._lock)

    def _close_file(self, name: str) -> None:
        descriptor = self._open.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def _sync_names(self) -> None:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._unsynced_names.clear()
