"""The journal: rows that survive the process that wrote them.

Segments are written from memory, so a process that is killed loses its last rows, and a trace with holes
proves nothing. A journal gets each row at once, in a file that the operating system keeps when the process
dies. A member that stops normally removes its journal. A journal that nobody has locked belonged to a member
that was killed: it is turned into segments, which replace those that the member had written.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from priocast.trace.run_directory import GROUP_EVENTS, JOURNALS, MESSAGES, write_segment
from priocast.trace.schema import GroupEventRow, MessageRow, TraceRow

_SUFFIX = ".journal"
_LENGTH_BYTES = 4
_MESSAGE, _GROUP_EVENT = b"m", b"g"
_encode = msgspec.msgpack.Encoder().encode
_decode_message = msgspec.msgpack.Decoder(MessageRow).decode
_decode_group_event = msgspec.msgpack.Decoder(GroupEventRow).decode


class Journal:
    """One member's rows, each in the file before anything else happens."""

    def __init__(self, directory: Path, prefix: str) -> None:
        journals = directory / JOURNALS
        journals.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = journals / f"{prefix}{_SUFFIX}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def add(self, row: TraceRow) -> None:
        """Write a row: its length, its table, its columns."""
        body = _encode(row)
        table = _MESSAGE if isinstance(row, MessageRow) else _GROUP_EVENT
        os.write(self._file, len(body).to_bytes(_LENGTH_BYTES) + table + body)

    def remove(self) -> None:
        """Remove the journal, because all rows are in segments."""
        self._path.unlink()
        os.close(self._file)


def recover(directory: Path) -> list[str]:
    """Turn the journals of killed members into segments; return the names of those members."""
    found = []
    for path in sorted((directory / JOURNALS).glob(f"*{_SUFFIX}")):
        prefix = path.name.removesuffix(_SUFFIX)
        with path.open("rb") as file:
            if _is_in_use(file):
                continue
            rows = list(_rows(file))
            if rows:
                for table in (MESSAGES, GROUP_EVENTS):
                    for segment in (directory / table).glob(f"{prefix}-[0-9]*.parquet"):
                        segment.unlink()
                write_segment(directory, f"{prefix}-000000", rows)
            path.unlink()
        found.append(prefix)
    return found


def _is_in_use(file: BinaryIO) -> bool:
    """Whether a running process writes to the journal."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _rows(file: BinaryIO) -> Iterator[TraceRow]:
    """The rows up to the first one that was not written completely."""
    while len(length := file.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
        table, size = file.read(len(_MESSAGE)), int.from_bytes(length)
        body = file.read(size)
        if len(body) < size:
            return
        yield _decode_message(body) if table == _MESSAGE else _decode_group_event(body)
