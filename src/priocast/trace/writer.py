"""Writes rows to a run directory, outside the hot path.

The driver appends rows to a list, and a separate thread turns them into Parquet segments. It takes them in
small chunks: converting one blocks the interpreter for 0.7 ms, where a whole segment would block the member
for 50 ms. The number of rows that wait to be written is bounded. When the bound is reached, the driver waits
for the writer (a trace with holes proves nothing), and `waited` counts how often that happened.
"""

import importlib
import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from priocast.core.identity import ProcessId
from priocast.trace.journal import Journal
from priocast.trace.run_directory import to_message_table, write_group_events, write_message_table
from priocast.trace.schema import GroupEventRow, MessageRow, TraceRow

if TYPE_CHECKING:
    import pyarrow

_CHUNK_ROWS = 1024
_SEGMENT_CHUNKS = 64
_SEGMENT_NS = 2_000_000_000
_PHASES = 8
_CHUNKS_WAITING_MAX = 512


class TraceWriter:
    """Writes the rows of one member to disk; with `journal`, they survive a process that is killed."""

    def __init__(self, directory: Path, me: ProcessId, journal: bool = False) -> None:
        self._directory = directory
        self._prefix = f"{me.name}-{me.incarnation}"
        self._journal = Journal(directory, self._prefix) if journal else None
        self._rows: list[TraceRow] = []
        self._queue: queue.Queue[list[TraceRow] | None] = queue.Queue(_CHUNKS_WAITING_MAX)
        self._chunks: list[pyarrow.Table] = []
        self._group_events: list[GroupEventRow] = []
        self._opened_ns = self._segments = 0
        # Members start together. If they also wrote their segments together, the whole group would pause.
        self._segment_ns = _SEGMENT_NS * (1 + crc32(self._prefix.encode()) % _PHASES) // _PHASES
        self._failure: Exception | None = None
        self.waited = 0
        # Importing pyarrow takes as long as thousands of messages: it is done here, before the first one.
        importlib.import_module("pyarrow.parquet")
        self._thread = threading.Thread(target=self._write, name=f"trace {self._prefix}", daemon=True)
        self._thread.start()

    def emit(self, row: TraceRow) -> None:
        """Take a row; the thread writes it later."""
        if self._journal is not None:
            self._journal.add(row)
        rows = self._rows
        rows.append(row)
        if len(rows) >= _CHUNK_ROWS or row.time_ns - rows[0].time_ns >= _SEGMENT_NS:
            self._enqueue()

    def close(self) -> None:
        """Write the remaining rows and wait for the disk; raise the first error that occurred."""
        self._enqueue()
        self._queue.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if self._journal is not None:
            self._journal.remove()

    def _enqueue(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self.waited += self._queue.full()
            self._queue.put(rows)

    def _write(self) -> None:
        """Take chunks until the end, even after a failure: the driver must never wait for a dead thread."""
        ended = False
        while not ended:
            rows = self._queue.get()
            ended = rows is None
            if self._failure is None:
                try:
                    self._take(rows)
                except Exception as error:
                    self._failure = error

    def _take(self, rows: list[TraceRow] | None) -> None:
        """Add a chunk to the segment (None: there are no more), and write the segment when it is full."""
        is_full = rows is None
        if rows is not None:
            self._opened_ns = self._opened_ns if self._chunks or self._group_events else rows[0].time_ns
            messages = [row for row in rows if isinstance(row, MessageRow)]
            if len(messages) < len(rows):
                self._group_events += [row for row in rows if isinstance(row, GroupEventRow)]
            if messages:
                self._chunks.append(to_message_table(messages))
            lasted_ns = rows[-1].time_ns - self._opened_ns
            is_full = len(self._chunks) >= _SEGMENT_CHUNKS or lasted_ns >= self._segment_ns
        if is_full:
            self._write_segment()

    def _write_segment(self) -> None:
        import pyarrow as pa

        name = f"{self._prefix}-{self._segments:06}"
        if self._chunks:
            table = pa.concat_tables(self._chunks).unify_dictionaries()
            write_message_table(self._directory, name, table)
        if self._group_events:
            write_group_events(self._directory, name, self._group_events)
        if self._chunks or self._group_events:
            self._segments += 1
        self._chunks, self._group_events = [], []
        self._segment_ns = _SEGMENT_NS
