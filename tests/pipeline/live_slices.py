"""Rows of sample runs as `priocast watch` receives them: slice by slice."""

from collections.abc import Iterable, Iterator

from priocast.pipeline.live.live_rows import COLUMNS, EVENTS
from priocast.trace.schema import MessageRow, ServiceRow, TraceRow


def slices_of(rows: Iterable[TraceRow], run: str, count: int) -> Iterator[list[dict[str, object]]]:
    """The rows that are watched, in the order of the list, in this many slices."""
    watched = [
        {"run": run, **dict.fromkeys(COLUMNS), **row._asdict()}
        for row in rows
        if not isinstance(row, ServiceRow) and row.event in EVENTS
    ]
    size = -(-len(watched) // count)
    for start in range(0, len(watched), size):
        yield watched[start : start + size]


def reordering(rows: list[TraceRow]) -> list[TraceRow]:
    """The same rows, as if the views re-ordered queues."""
    return [row if isinstance(row, MessageRow) else row._replace(order="reorder") for row in rows]  # type: ignore[call-arg]
