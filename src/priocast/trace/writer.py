"""Writes rows to a run directory, outside the hot path.

The driver appends rows to a list, and a separate thread turns them into Parquet segments. It takes them in
small chunks: converting one blocks the interpreter for 0.7 ms, where a whole segment would block the member
for 50 ms. The number of rows that wait to be written is bounded. When the bound is reached, the driver waits
for the writer (a trace with holes proves nothing), and `waited` counts how often that happened.

A disk that is full does not stop the member. The rows wait, and the thread tries again until there is room.
When too many wait, the record of this incarnation ends: rows that follow are lost, and those before are
written as soon as possible, so that the record has an early end and no hole.

What a full disk has kept out of the journal is only in memory. The first row that the journal takes again
therefore ends a segment, which is written at once: until then, a process that is killed loses these rows, and
its record ends before them.
"""

import importlib
import os
import queue
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args
from zlib import crc32

from priocast.core.identity import ProcessId
from priocast.trace.columns import to_table
from priocast.trace.journal import Journal
from priocast.trace.remote_directory import RemoteDirectory, RunLocation, first_line
from priocast.trace.run_directory import by_table, write_table
from priocast.trace.schema import TraceRow

if TYPE_CHECKING:
    import pyarrow

_CHUNK_ROWS = 1024
_SEGMENT_CHUNKS = 64
_SEGMENT_NS = 2_000_000_000
_PHASES = 8
_CHUNKS_WAITING_MAX = 512
_RETRY_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.05


class _Chunk(NamedTuple):
    """Rows for the thread; `ends_segment`: the journal lacks them, or those that follow."""

    rows: list[TraceRow]
    ends_segment: bool


class TraceWriter:
    """Writes the rows of one member of a run; with `journal`, they survive a process that is killed.

    Rows have the driver's time, of a clock that begins anywhere. Each chunk therefore says by how much the
    clock of the machine was ahead of it when the chunk was written.

    `problem` says what keeps rows from being written now, `lost` how many rows the record lacks at its end.
    """

    def __init__(self, directory: RunLocation, run: str, me: ProcessId, journal: bool = False) -> None:
        assert not (journal and isinstance(directory, RemoteDirectory)), "only local files can be appended to"
        self._directory = directory
        self._run = run
        self._prefix = f"{me.name}-{me.incarnation}"
        self._journal = Journal(directory, self._prefix) if journal and isinstance(directory, Path) else None
        self._journal_error: OSError | None = None
        self._journal_lacks_rows = False
        self._rows: list[TraceRow] = []
        self._queue: queue.Queue[_Chunk | None] = queue.Queue(_CHUNKS_WAITING_MAX)
        self._chunks: dict[type[TraceRow], list[pyarrow.Table]] = {}
        self._opened_ns = self._segments = 0
        # Members start together. If they also wrote their segments together, the whole group would pause.
        self._segment_ns = _SEGMENT_NS * (1 + crc32(self._prefix.encode()) % _PHASES) // _PHASES
        self._disk_error: OSError | None = None
        self._loss: Exception | None = None
        self._failure: Exception | None = None
        self._finishing = False
        self._closing = False
        self._may_have_room = threading.Event()
        self.waited = 0
        self.lost = 0
        _prepare()
        self._thread = threading.Thread(target=self._write, name=f"trace {self._prefix}", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why rows are not written now, or were lost; empty if all is well."""
        if self.lost:
            lost = f"ended early, {self.lost:,} rows are lost"
            return f"the record of {self._prefix} {lost}: {_reason(self._loss)}"
        error = self._failure or self._disk_error or self._journal_error
        return f"the record of {self._prefix} is not written now: {_reason(error)}" if error else ""

    @property
    def is_complete(self) -> bool:
        """Whether all rows are written, and there are no more."""
        return not (self._thread.is_alive() or self._loss or self._failure)

    def emit(self, row: TraceRow) -> None:
        """Take a row; the thread writes it later."""
        if self.lost:
            self.lost += 1
            return
        rows = self._rows
        rows.append(row)
        ends_segment = self._journal is not None and self._add_to_journal(self._journal, row)
        if ends_segment or len(rows) >= _CHUNK_ROWS or row.time_ns - rows[0].time_ns >= _SEGMENT_NS:
            self._enqueue(ends_segment)

    def finish(self) -> None:
        """There are no more rows; the thread writes what is left and ends."""
        self._enqueue()
        self._finishing = True
        with suppress(queue.Full):  # then the thread has chunks to take, and sees that they are the last
            self._queue.put_nowait(None)

    def close(self) -> None:
        """Write the remaining rows and wait for the disk; raise the first error that lost any."""
        self._closing = True
        self._may_have_room.set()
        self.finish()
        self._thread.join()
        if error := self._loss or self._failure:
            raise error

    def _add_to_journal(self, journal: Journal, row: TraceRow) -> bool:
        """Add a row; return whether it ends a segment, because the journal begins or ceases to lack rows."""
        lacked_rows = self._journal_lacks_rows
        try:
            journal.add(row)
            self._journal_error = None
        except OSError as error:
            self._journal_error = error
        self._journal_lacks_rows = self._journal_error is not None
        if lacked_rows and not self._journal_lacks_rows:
            self._may_have_room.set()
        return lacked_rows != self._journal_lacks_rows

    def _enqueue(self, ends_segment: bool = False) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        if self._queue.full() and self._disk_error is None:
            self.waited += 1
        while True:
            if self._queue.full() and self._disk_error is not None and not self._closing:
                self.lost, self._loss = len(rows), self._disk_error
                return
            with suppress(queue.Full):  # the disk may be found to be full while the driver waits here
                self._queue.put(_Chunk(rows, ends_segment), timeout=_LOOK_AGAIN_SECONDS)
                return

    def _write(self) -> None:
        """Take chunks until the end, even after a failure: the driver must never wait for a dead thread."""
        chunk: _Chunk | None = _Chunk([], ends_segment=False)
        while chunk is not None:
            chunk = None if self._finishing and self._queue.empty() else self._queue.get()
            if self._failure is None:
                try:
                    self._take(chunk)
                except Exception as error:
                    self._failure = error
        if self._journal is not None and not (self._loss or self._failure):
            self._journal.remove()

    def _take(self, chunk: _Chunk | None) -> None:
        """Add a chunk to the segment (None: there are no more), and write the segment when it is full."""
        is_full = chunk is None
        if chunk is not None:
            rows = chunk.rows
            self._opened_ns = self._opened_ns if self._chunks else rows[0].time_ns
            for kind, of_table in by_table(rows).items():
                table = to_table(kind, of_table, self._run, time.time_ns() - time.monotonic_ns())
                self._chunks.setdefault(kind, []).append(table)
            lasted_ns = rows[-1].time_ns - self._opened_ns
            most = max(map(len, self._chunks.values()))
            is_full = chunk.ends_segment or most >= _SEGMENT_CHUNKS or lasted_ns >= self._segment_ns
        if is_full:
            self._write_when_possible()

    def _write_when_possible(self) -> None:
        """Write the segment, and try again while the disk is full; when the writer is closed, once more."""
        while True:
            self._may_have_room.clear()
            last_attempt = self._closing
            try:
                self._write_segment()
            except OSError as error:
                self._disk_error = error
                if last_attempt:
                    raise
            else:
                self._disk_error = self._journal_error = None
                return
            self._may_have_room.wait(_RETRY_SECONDS)

    def _write_segment(self) -> None:
        import pyarrow as pa

        name = f"{self._prefix}-{self._segments:06}"
        for kind, chunks in self._chunks.items():
            table = pa.concat_tables(chunks).unify_dictionaries()
            write_table(self._directory, name, kind, table)
        if self._chunks:
            self._segments += 1
        self._chunks = {}
        self._segment_ns = _SEGMENT_NS


def _prepare() -> None:
    """Import what the first table needs, before the first message: it takes as long as thousands of them.

    Besides pyarrow that is pandas, if it is installed: pyarrow looks for it when it sees the first values.
    """
    importlib.import_module("pyarrow.parquet")
    for kind in get_args(TraceRow):
        to_table(kind, [], "")


def _reason(error: Exception | None) -> str:
    """The system's text for an error of the disk, which pyarrow writes at greater length."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return first_line(error)
