"""Journals as killed processes leave them."""

from collections.abc import Iterable
from pathlib import Path

from priocast.trace.journal import Journal
from priocast.trace.run_directory import JOURNALS
from priocast.trace.schema import TraceRow


def journal_of(directory: Path, rows: Iterable[TraceRow], prefix: str = "a-1") -> Path:
    """The journal of a killed process that wrote these rows."""
    journal = Journal(directory, prefix)
    for each in rows:
        journal.add(each)
    path = directory / JOURNALS / f"{prefix}.journal"
    whole = path.read_bytes()
    journal.remove()
    path.write_bytes(whole)
    return path
