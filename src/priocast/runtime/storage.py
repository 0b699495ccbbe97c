"""What one member keeps on disk: its incarnation numbers and its part of the trace.

A disk that is full does not stop a member: what is wrong is in its status, and in the log of a node.
"""

import asyncio

from priocast.core.identity import ProcessId
from priocast.membership.observer import Observer
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.tracing import Tracing


class Storage:
    """The files of one member in one group."""

    def __init__(self, incarnations: Incarnations, tracing: Tracing | None) -> None:
        self.incarnations = incarnations
        self._tracing = tracing
        self._keeping = asyncio.create_task(incarnations.keep_stored())

    def observe(self, me: ProcessId) -> Observer | None:
        """What records an incarnation, if the run is traced."""
        return self._tracing.open(me) if self._tracing else None

    @property
    def problems(self) -> list[str]:
        """What cannot be written now, or was lost, and why: a line each."""
        of_trace = self._tracing.problems if self._tracing else []
        return [problem for problem in (self.incarnations.problem, *of_trace) if problem]

    @property
    def rows_lost(self) -> int:
        """How many rows the trace lacks, because the disk was full for too long."""
        return self._tracing.rows_lost if self._tracing else 0

    def close(self) -> None:
        """Write what is left of the trace, and raise an error if it cannot be written."""
        self._keeping.cancel()
        if self._tracing:
            self._tracing.close()
