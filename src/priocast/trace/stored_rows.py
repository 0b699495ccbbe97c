"""All rows of a run: those in its segments, and those that only the journals of killed members have.

Reading changes nothing: a run can be read while its members write, from a read-only disk, and by several
readers at once. What a segment has is never taken from a journal.
"""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from priocast.core.errors import UnreadableTrace
from priocast.trace.journal import SUFFIX, is_in_use, read_rows
from priocast.trace.run_directory import (
    JOURNALS,
    RunSegments,
    by_process,
    find_segments,
    read_group_events,
    read_segment,
)
from priocast.trace.schema import GroupEventRow, MessageRow, ServiceRow, TraceRow

log = logging.getLogger("priocast.trace")


class StoredRows(NamedTuple):
    """The rows of a run: all group events, the segments of the other tables, and rows that are in none."""

    message_segments: tuple[Path, ...]
    journalled_messages: tuple[MessageRow, ...]
    group_events: tuple[GroupEventRow, ...]
    service_segments: tuple[Path, ...]
    journalled_services: tuple[ServiceRow, ...]


def find_rows(directory: Path) -> StoredRows:
    """The rows of a run directory, or an error if there are none, or they are damaged."""
    segments = find_segments(directory)
    journalled = sorted(_journalled(directory, segments), key=by_process)
    messages = tuple(row for row in journalled if isinstance(row, MessageRow))
    services = tuple(row for row in journalled if isinstance(row, ServiceRow))
    events = [row for row in journalled if isinstance(row, GroupEventRow)]
    events += read_group_events(segments.group_events)
    if not (segments.messages or segments.services or journalled or events):
        raise UnreadableTrace(f"{directory} contains no rows: the run ended before it recorded anything")
    events.sort(key=by_process)
    return StoredRows(segments.messages, messages, tuple(events), segments.services, services)


def _journalled(directory: Path, segments: RunSegments) -> Iterator[TraceRow]:
    """The rows of killed members that are in no segment."""
    for path in sorted((directory / JOURNALS).glob(f"*{SUFFIX}")):
        prefix = path.name.removesuffix(SUFFIX)
        saved: dict[type[TraceRow], set[int]] = {
            MessageRow: _steps(segments.messages, prefix),
            GroupEventRow: _steps(segments.group_events, prefix),
            ServiceRow: _steps(segments.services, prefix),
        }
        with path.open("rb") as file:
            if not is_in_use(file):
                yield from unsaved_rows(file, str(path), prefix, saved)


def running_processes(directory: Path) -> set[str]:
    """The processes that still write to their journals."""
    running = set()
    for path in (directory / JOURNALS).glob(f"*{SUFFIX}"):
        name, _, incarnation = path.name.removesuffix(SUFFIX).rpartition("-")
        with path.open("rb") as file:
            if is_in_use(file):
                running.add(f"{name}#{incarnation}")
    return running


def _steps(segments: tuple[Path, ...], prefix: str) -> set[int]:
    """The steps that the segments of one process have."""
    own = (path for path in segments if path.stem.rpartition("-")[0] == prefix)
    return {step for path in own for step in read_segment(path, ["step"])["step"].to_pylist()}


def unsaved_rows(
    journal: BinaryIO, name: str, prefix: str, saved: Mapping[type[TraceRow], set[int]]
) -> list[TraceRow]:
    """The rows of a journal that are in no segment, up to the first step that is in neither.

    `saved` has the steps in the segments of the process with this `prefix`, for each table.
    """
    unsaved: list[TraceRow] = []
    damage = ""
    try:
        unsaved.extend(row for row in read_rows(journal, name) if row.step not in saved[type(row)])
    except UnreadableTrace as error:
        damage = str(error)
    steps = {row.step for row in unsaved}.union(*saved.values())
    end = next(step for step in range(len(steps) + 1) if step not in steps)
    if damage or end < len(steps):
        log.warning(
            "the record of %s ends at step %d: %s", prefix, end, damage or "its journal lacks rows after that"
        )
    return [row for row in unsaved if row.step < end]
