"""The journal: rows that survive the process that wrote them.

Segments are written from memory, so a process that is killed loses its last rows, and a trace with holes
proves nothing. A journal gets each row at once, in a file that the operating system keeps when the process
dies. A member that stops normally removes its journal. A journal that nobody has locked belonged to a member
that was killed: readers take from it the rows that no segment has (`stored_rows.py`), and change nothing.

    length, table ─ checksum ─ columns ─ checksum       one row

A row that is only partly there at the end of the file was being written when the process died. Every other
row that does not have its checksum was damaged later; what follows it cannot be trusted.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec

from priocast.core.errors import UnreadableTrace
from priocast.trace.run_directory import JOURNALS
from priocast.trace.schema import GroupEventRow, MessageRow, ServiceRow, TraceRow

SUFFIX = ".journal"
_LENGTH_BYTES = _CHECKSUM_BYTES = 4
_HEADER_BYTES = _LENGTH_BYTES + 1 + _CHECKSUM_BYTES
_encode = msgspec.msgpack.Encoder().encode
_TAGS: dict[type[TraceRow], bytes] = {MessageRow: b"m", GroupEventRow: b"g", ServiceRow: b"s"}
_DECODERS = {tag: msgspec.msgpack.Decoder(kind) for kind, tag in _TAGS.items()}


class Journal:
    """One member's rows, each in the file before anything else happens."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._path = directory / JOURNALS / f"{prefix}{SUFFIX}"
        self._file: int | None = None
        self._size = 0

    def add(self, row: TraceRow) -> None:
        """Write a row. One that the disk takes only in part is removed, and OSError raised."""
        body = _encode(row)
        header = len(body).to_bytes(_LENGTH_BYTES) + _TAGS[type(row)]
        entry = header + _checksum(header) + body + _checksum(body)
        file = self._file if self._file is not None else self._open()
        written = os.write(file, entry)
        if written < len(entry):
            os.ftruncate(file, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += written

    def remove(self) -> None:
        """Remove the journal, because all rows are in segments."""
        if self._file is not None:
            self._path.unlink()
            os.close(self._file)

    def _open(self) -> int:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        import fcntl

        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._size = os.fstat(self._file).st_size
        return self._file


def is_in_use(file: BinaryIO) -> bool:
    """Whether a running process writes to the journal; where there are no file locks, there is no writer."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def read_rows(file: BinaryIO, name: str) -> Iterator[TraceRow]:
    """The rows up to the end; raises UnreadableTrace at the first one that is damaged, or no row at all.

    Checksums find damage, not intent: a length is compared with the file before so much memory is reserved.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    while len(header := file.read(_HEADER_BYTES)) == _HEADER_BYTES:
        start = file.tell() - _HEADER_BYTES
        described, checksum = header[:-_CHECKSUM_BYTES], header[-_CHECKSUM_BYTES:]
        length, table = int.from_bytes(described[:_LENGTH_BYTES]), described[_LENGTH_BYTES:]
        if _checksum(described) != checksum or table not in _DECODERS:
            raise UnreadableTrace(f"{name} is damaged at byte {start}")
        if file.tell() + length + _CHECKSUM_BYTES > size:
            return
        body, checksum = file.read(length), file.read(_CHECKSUM_BYTES)
        if _checksum(body) != checksum:
            raise UnreadableTrace(f"{name} is damaged at byte {start}")
        try:
            row = _DECODERS[table].decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnreadableTrace(f"{name} has no row at byte {start}: {error}") from error
        yield row


def _checksum(data: bytes) -> bytes:
    return crc32(data).to_bytes(_CHECKSUM_BYTES)
