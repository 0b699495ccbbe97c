"""Writes rows to a run directory beside the hot path.

The driver appends rows to a list; a thread of its own turns them into Parquet segments. It takes them in
small chunks: converting one holds the interpreter for 0.7 ms, where a whole segment would stop the member for
fifty. What waits to be written is bounded: when it is too much, the driver waits for the
writer (a trace with holes proves nothing), and `waited` says how often that happened.
"""

import importlib
import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from priocast.core.identity import ProcessId
from priocast.trace.journal import Journal
from priocast.trace.run_directory import to_table, write_table
from priocast.trace.schema import Row

if TYPE_CHECKING:
    import pyarrow

_CHUNK_ROWS = 1024
_SEGMENT_CHUNKS = 64
_SEGMENT_NS = 2_000_000_000
_PHASES = 8
_CHUNKS_WAITING_MAX = 512


class TraceWriter:
    """One member's rows on their way to disk; with `journal`, they survive a process that is killed."""

    def __init__(self, directory: Path, me: ProcessId, journal: bool = False) -> None:
        self._directory = directory
        self._prefix = f"{me.name}-{me.incarnation}"
        self._journal = Journal(directory, self._prefix) if journal else None
        self._rows: list[Row] = []
        self._queue: queue.Queue[list[Row] | None] = queue.Queue(_CHUNKS_WAITING_MAX)
        self._chunks: list[pyarrow.Table] = []
        self._opened_ns = self._segments = 0
        # Members begin together. If they wrote their segments together, too, none would get on meanwhile.
        self._segment_ns = _SEGMENT_NS * (1 + crc32(self._prefix.encode()) % _PHASES) // _PHASES
        self._failure: Exception | None = None
        self.waited = 0
        # Importing pyarrow takes as long as thousands of messages: here, and not in the middle of them.
        importlib.import_module("pyarrow.parquet")
        self._thread = threading.Thread(target=self._write, name=f"trace {self._prefix}", daemon=True)
        self._thread.start()

    def emit(self, row: Row) -> None:
        """Take a row; the thread writes it later."""
        if self._journal is not None:
            self._journal.add(row)
        rows = self._rows
        rows.append(row)
        if len(rows) >= _CHUNK_ROWS or row.time_ns - rows[0].time_ns >= _SEGMENT_NS:
            self._hand_over()

    def close(self) -> None:
        """Write what is left and wait for the disk; raise what went wrong on the way there."""
        self._hand_over()
        self._queue.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if self._journal is not None:
            self._journal.remove()

    def _hand_over(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self.waited += self._queue.full()
            self._queue.put(rows)

    def _write(self) -> None:
        """Take chunks to the end, also after a failure: the driver must never wait for a dead thread."""
        ended = False
        while not ended:
            rows = self._queue.get()
            ended = rows is None
            if self._failure is None:
                try:
                    self._take(rows)
                except Exception as error:
                    self._failure = error

    def _take(self, rows: list[Row] | None) -> None:
        """Add a chunk to the segment (None: there are no more), and write it when it is long enough."""
        whole = rows is None
        if rows is not None:
            self._opened_ns = self._opened_ns if self._chunks else rows[0].time_ns
            self._chunks.append(to_table(rows))
            lasted_ns = rows[-1].time_ns - self._opened_ns
            whole = len(self._chunks) >= _SEGMENT_CHUNKS or lasted_ns >= self._segment_ns
        if whole and self._chunks:
            self._write_segment()

    def _write_segment(self) -> None:
        import pyarrow as pa

        table = pa.concat_tables(self._chunks).unify_dictionaries()
        write_table(self._directory, f"{self._prefix}-{self._segments:06}", table)
        self._chunks = []
        self._segments += 1
        self._segment_ns = _SEGMENT_NS
