"""The journal: rows that survive the process that wrote them.

Segments are written from memory, so a process that is killed takes its last rows with it, and a trace with
holes proves nothing. A journal gets each row at once, in a file that the system keeps when the process dies.
A member that ends in an orderly way removes its journal; one that is found later, and that nobody holds a
lock on, is what a killed member left, and is turned into a segment in place of those that it had written.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from priocast.trace.run_directory import EVENTS, write_segment
from priocast.trace.schema import Row

_SUFFIX = ".journal"
_LENGTH_BYTES = 4
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode


class Journal:
    """One member's rows, each in the file before anything else happens."""

    def __init__(self, directory: Path, prefix: str) -> None:
        events = directory / EVENTS
        events.mkdir(parents=True, exist_ok=True)
        self._path = events / f"{prefix}{_SUFFIX}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def add(self, row: Row) -> None:
        """Write a row."""
        body = _encode(row)
        os.write(self._file, len(body).to_bytes(_LENGTH_BYTES) + body)

    def remove(self) -> None:
        """All rows are in segments: the journal has done its work."""
        self._path.unlink()
        os.close(self._file)


def recover(directory: Path) -> list[str]:
    """Turn what killed members left into segments; return the names of those members."""
    found = []
    for path in sorted((directory / EVENTS).glob(f"*{_SUFFIX}")):
        prefix = path.name.removesuffix(_SUFFIX)
        with path.open("rb") as file:
            if _is_in_use(file):
                continue
            rows = list(_rows(file))
            if rows:
                for segment in (directory / EVENTS).glob(f"{prefix}-[0-9]*.parquet"):
                    segment.unlink()
                write_segment(directory, f"{prefix}-000000", rows)
            path.unlink()
        found.append(prefix)
    return found


def _is_in_use(file: BinaryIO) -> bool:
    """Whether a living process writes here."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _rows(file: BinaryIO) -> Iterator[Row]:
    """The rows up to the first that was not written whole."""
    while len(length := file.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
        size = int.from_bytes(length)
        body = file.read(size)
        if len(body) < size:
            return
        yield _decode(body)
