"""Writes rows to a run directory beside the hot path.

The driver appends rows to a list; a thread of its own turns each list into a Parquet segment. What waits
to be written is bounded: when it is too much, the driver waits for the writer (a trace with holes proves
nothing), and `waited` says how often that happened.
"""

import queue
import threading
from pathlib import Path

from priocast.core.identity import ProcessId
from priocast.trace.run_directory import write_segment
from priocast.trace.schema import Row

_SEGMENT_ROWS = 64 * 1024
_SEGMENT_NS = 2_000_000_000
_SEGMENTS_WAITING_MAX = 8


class TraceWriter:
    """One member's rows on their way to disk."""

    def __init__(self, directory: Path, me: ProcessId) -> None:
        self._directory = directory
        self._prefix = f"{me.name}-{me.incarnation}"
        self._rows: list[Row] = []
        self._queue: queue.Queue[list[Row] | None] = queue.Queue(_SEGMENTS_WAITING_MAX)
        self._failure: OSError | None = None
        self.waited = 0
        self._thread = threading.Thread(target=self._write, name=f"trace {self._prefix}", daemon=True)
        self._thread.start()

    def emit(self, row: Row) -> None:
        """Take a row; the thread writes it later."""
        rows = self._rows
        rows.append(row)
        if len(rows) >= _SEGMENT_ROWS or row.time_ns - rows[0].time_ns >= _SEGMENT_NS:
            self._hand_over()

    def close(self) -> None:
        """Write what is left and wait for the disk; raise what the disk said, if it refused."""
        self._hand_over()
        self._queue.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _hand_over(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self.waited += self._queue.full()
            self._queue.put(rows)

    def _write(self) -> None:
        number = 0
        while (rows := self._queue.get()) is not None:
            if self._failure is None:
                try:
                    write_segment(self._directory, f"{self._prefix}-{number:06}", rows)
                except OSError as error:
                    self._failure = error
                number += 1
