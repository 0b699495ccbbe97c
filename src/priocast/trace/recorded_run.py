"""One recorded run, read without Spark: to look at a few of its messages."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import HIGHEST
from priocast.trace.columns import to_table
from priocast.trace.missing_records import check_records
from priocast.trace.run_directory import (
    by_process,
    find_runs,
    read_manifest,
    read_segment,
)
from priocast.trace.schema import (
    RECEIVED,
    SENT,
    VIEW,
    GroupEventRow,
    Manifest,
    MessageRow,
    TraceRow,
    ViewName,
    ViewOrder,
)
from priocast.trace.stored_rows import StoredRows, find_rows, running_processes

if TYPE_CHECKING:
    import pyarrow


class RecordedView(msgspec.Struct, frozen=True):
    """A view, as the first process that received it recorded it."""

    name: ViewName
    members: tuple[str, ...]
    orderer: str
    order: ViewOrder

    def __str__(self) -> str:
        return str(self.name)


class RecordedRun:
    """The rows of a run, and its views by name."""

    def __init__(
        self, manifest: Manifest, messages: "pyarrow.Table", group_events: tuple[GroupEventRow, ...]
    ) -> None:
        self.manifest = manifest
        self.group_events = group_events
        self._messages = messages

    @cached_property
    def views(self) -> dict[ViewName, RecordedView]:
        """The views that any process received, by name."""
        found: dict[ViewName, RecordedView] = {}
        rows = [row for row in self.group_events if row.event == VIEW]
        for row in sorted(rows, key=lambda row: (view_of(row), process_of(row))):
            view = RecordedView(view_of(row), row.members, row.orderer, row.view_order)
            found.setdefault(view.name, view)
        return found

    def messages(self, **wanted: str | int) -> Iterator[MessageRow]:
        """The rows of the table `messages` that have these values, by process and step."""
        from pyarrow import compute

        table = self._messages
        for column, value in wanted.items():
            table = table.filter(compute.equal(table[column], value))
        columns = [table[name].to_pylist() for name in MessageRow._fields]
        rows = map(MessageRow._make, zip(*columns, strict=True))
        return iter(sorted(rows, key=by_process))

    def rows_of(self, message: MessageId) -> list[MessageRow]:
        """Every row about a message."""
        sender = message.sender
        rows = self.messages(sender=sender.name, sender_incarnation=sender.incarnation, level=message.level)
        return [row for row in rows if row.first <= message.number < row.first + row.count]


def open_run(path: Path) -> RecordedRun:
    """Open the run at a path."""
    import pyarrow

    directories = find_runs(path)
    if len(directories) > 1:
        names = ", ".join(str(directory) for directory in directories[:5])
        raise InvalidInput(f"{path} contains {len(directories)} runs: give one of them, such as {names}")
    (directory,) = directories
    manifest = read_manifest(directory)
    rows = find_rows(directory)
    journalled = to_table(MessageRow, rows.journalled_messages, manifest.run)
    tables = [journalled, *map(read_segment, rows.message_segments)]
    messages = pyarrow.concat_tables(tables).unify_dictionaries()
    check_records(
        directory,
        manifest,
        rows.group_events,
        lambda: _recorders(messages, rows) | running_processes(directory),
        lambda: _processes(messages, "sender", "sender_incarnation"),
    )
    return RecordedRun(manifest, messages, rows.group_events)


def _recorders(messages: "pyarrow.Table", rows: StoredRows) -> set[str]:
    """The processes that recorded messages or services."""
    columns = ("member", "incarnation")
    found = _processes(messages, *columns) | {process_of(row) for row in rows.journalled_services}
    return found.union(*(_processes(read_segment(path), *columns) for path in rows.service_segments))


def _processes(table: "pyarrow.Table", name: str, incarnation: str) -> set[str]:
    """The processes in two columns of a table."""
    pairs = table.select([name, incarnation]).group_by([name, incarnation]).aggregate([])
    values = zip(pairs[name].to_pylist(), pairs[incarnation].to_pylist(), strict=True)
    return {f"{member}#{number}" for member, number in values}


def messages_of(row: MessageRow) -> Iterator[MessageId]:
    """The messages of a row."""
    sender = ProcessId(row.sender, row.sender_incarnation)
    for number in range(row.first, row.first + row.count):
        yield MessageId(sender, row.level, number)


def process_of(row: TraceRow) -> str:
    """The process that recorded a row."""
    return f"{row.member}#{row.incarnation}"


def sender_of(row: MessageRow) -> str:
    """The process that broadcast the messages of a row."""
    return f"{row.sender}#{row.sender_incarnation}"


def view_of(row: TraceRow) -> ViewName:
    """The view of a row."""
    return ViewName(row.view, row.coordinator)


def urgency_of(row: MessageRow) -> int:
    """The level by which the messages of a row leave a queue."""
    return HIGHEST if row.priorities else row.level


def is_reference(row: MessageRow) -> bool:
    """Whether the packet of a row only references its messages."""
    return row.event in (SENT, RECEIVED) and not row.bytes
