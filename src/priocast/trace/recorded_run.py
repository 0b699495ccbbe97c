"""One recorded run, read without Spark: for a look at a few of its messages."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from priocast.core.errors import InvalidInput, UnreadableTrace
from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import HIGHEST
from priocast.trace.journal import recover
from priocast.trace.run_directory import find_runs, read_manifest, segments
from priocast.trace.schema import RECEIVED, SENT, VIEW, Manifest, Row, ViewOrder, read_view_order

if TYPE_CHECKING:
    import pyarrow

ViewName = tuple[int, str]


class ToldView(msgspec.Struct, frozen=True):
    """A view as the first one tells it who was told."""

    name: ViewName
    members: tuple[str, ...]
    orderer: str
    order: ViewOrder

    def __str__(self) -> str:
        return "@".join(map(str, self.name))


class RecordedRun:
    """The rows of a run, and its views by name."""

    def __init__(self, manifest: Manifest, table: "pyarrow.Table") -> None:
        self.manifest = manifest
        self._table = table

    @cached_property
    def views(self) -> dict[ViewName, ToldView]:
        """The views that anybody was told of, by name."""
        found: dict[ViewName, ToldView] = {}
        for row in sorted(self.rows(event=VIEW), key=lambda row: (view_of(row), process_of(row))):
            orderer = f"{row.sender}#{row.sender_incarnation}" if row.sender else ""
            told = ToldView(view_of(row), tuple(row.peer.split(",")), orderer, read_view_order(row.order))
            found.setdefault(told.name, told)
        return found

    def rows(self, **wanted: str | int) -> Iterator[Row]:
        """The rows with these values, by process and step."""
        from pyarrow import compute

        table = self._table
        for column, value in wanted.items():
            table = table.filter(compute.equal(table[column], value))
        columns = [table[name].to_pylist() for name in Row._fields]
        rows = map(Row._make, zip(*columns, strict=True))
        return iter(sorted(rows, key=lambda row: (row.member, row.incarnation, row.step)))

    def rows_of(self, message: MessageId) -> list[Row]:
        """Every row that speaks of a message."""
        sender = message.sender
        rows = self.rows(sender=sender.name, sender_incarnation=sender.incarnation, level=message.level)
        return [row for row in rows if row.first <= message.number < row.first + row.count]


def open_run(path: Path) -> RecordedRun:
    """The run at a path; what members left that were killed is made part of it first."""
    import pyarrow
    from pyarrow import parquet

    directories = find_runs(path)
    if len(directories) > 1:
        names = ", ".join(str(directory) for directory in directories[:5])
        raise InvalidInput(f"{path} holds {len(directories)} runs: name one of them, such as {names}")
    (directory,) = directories
    manifest = read_manifest(directory)
    recover(directory)
    try:
        tables = [parquet.read_table(segment) for segment in segments(directory)]
    except (pyarrow.ArrowException, OSError) as error:
        raise UnreadableTrace(f"{directory} cannot be read: {str(error).splitlines()[0]}") from error
    return RecordedRun(manifest, pyarrow.concat_tables(tables).unify_dictionaries())


def messages_of(row: Row) -> Iterator[MessageId]:
    """The messages that a row speaks of."""
    sender = ProcessId(row.sender, row.sender_incarnation)
    for number in range(row.first, row.first + row.count):
        yield MessageId(sender, row.level, number)


def process_of(row: Row) -> str:
    """Whose row it is."""
    return f"{row.member}#{row.incarnation}"


def sender_of(row: Row) -> str:
    """Whose messages a row speaks of."""
    return f"{row.sender}#{row.sender_incarnation}"


def view_of(row: Row) -> ViewName:
    """The view of a row."""
    return row.view, row.coordinator


def urgency_of(row: Row) -> int:
    """The level by which the messages of a row leave a queue."""
    return HIGHEST if row.priorities else row.level


def is_named(row: Row) -> bool:
    """Whether the packet of a row only names its messages."""
    return row.event in (SENT, RECEIVED) and not row.bytes
