"""A run on disk: a directory with `manifest.json` and the members' rows as Parquet segments.

The segments of each table are in a directory of their own (`messages/`, `group_events/`, `services/`). A
segment is written to a temporary file and renamed when it is complete, so a reader never sees half of one,
and a process that is killed loses only what it had not yet written. The pages of a segment have checksums:
without them, a third of all flipped bits read as other rows.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from priocast.core.errors import ForeignTrace, UnreadableTrace
from priocast.core.view_reason import Eviction
from priocast.trace.schema import (
    FORMAT,
    SCHEMA_VERSION,
    GroupEventRow,
    Manifest,
    MessageRow,
    ServiceRow,
    TraceRow,
)

if TYPE_CHECKING:
    import pyarrow

MANIFEST = "manifest.json"
MESSAGES = "messages"
GROUP_EVENTS = "group_events"
SERVICES = "services"
JOURNALS = "journals"


class RunSegments(NamedTuple):
    """The Parquet files of a run, by table."""

    messages: tuple[Path, ...]
    group_events: tuple[Path, ...]
    services: tuple[Path, ...]


@cache
def message_schema() -> "pyarrow.Schema":
    """The Parquet schema of the table `messages`."""
    import pyarrow as pa

    dictionary = pa.dictionary(pa.int32(), pa.string())
    return _schema(
        MessageRow._fields,
        member=dictionary,
        incarnation=pa.int64(),
        view=pa.int64(),
        coordinator=dictionary,
        step=pa.int64(),
        time_ns=pa.int64(),
        event=dictionary,
        packet=dictionary,
        peer=dictionary,
        sender=dictionary,
        sender_incarnation=pa.int64(),
        level=pa.int32(),
        first=pa.int64(),
        count=pa.int32(),
        priorities=pa.binary(),
        safe=pa.bool_(),
        to=dictionary,
        client=dictionary,
        request=pa.int64(),
        position=pa.int64(),
        bytes=pa.int64(),
        backlog=pa.int64(),
        distribution=dictionary,
        stamp_number=pa.int64(),
    )


@cache
def group_event_schema() -> "pyarrow.Schema":
    """The Parquet schema of the table `group_events`."""
    import pyarrow as pa

    names = pa.list_(pa.string())
    return _schema(
        GroupEventRow._fields,
        member=pa.string(),
        incarnation=pa.int64(),
        view=pa.int64(),
        coordinator=pa.string(),
        step=pa.int64(),
        time_ns=pa.int64(),
        event=pa.string(),
        position=pa.int64(),
        members=names,
        orderer=pa.string(),
        order=pa.string(),
        starvation=pa.string(),
        priorities_act=pa.string(),
        sends_by_priority=pa.bool_(),
        founded=pa.bool_(),
        joined=names,
        left=names,
        failed=names,
        evicted=pa.list_(pa.struct([(name, pa.string()) for name in Eviction.__struct_fields__])),
        merged=names,
        order_change=pa.string(),
        voluntary=pa.bool_(),
        state_bytes=pa.int64(),
    )


@cache
def service_schema() -> "pyarrow.Schema":
    """The Parquet schema of the table `services`."""
    import pyarrow as pa

    dictionary, names = pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.string())
    return _schema(
        ServiceRow._fields,
        member=dictionary,
        incarnation=pa.int64(),
        view=pa.int64(),
        coordinator=dictionary,
        step=pa.int64(),
        time_ns=pa.int64(),
        event=dictionary,
        sender=dictionary,
        sender_incarnation=pa.int64(),
        stream=dictionary,
        number=pa.int64(),
        unit=pa.int32(),
        units=pa.int32(),
        bytes=pa.int64(),
        quality=dictionary,
        priority=pa.int32(),
        recipients=names,
        accepted=pa.bool_(),
        answered=names,
        rejected=names,
        reasons=names,
        missing=names,
        rounds=pa.int64(),
    )


TABLES: "dict[type[TraceRow], tuple[str, Callable[[], pyarrow.Schema]]]" = {
    MessageRow: (MESSAGES, message_schema),
    GroupEventRow: (GROUP_EVENTS, group_event_schema),
    ServiceRow: (SERVICES, service_schema),
}
"""The name and the schema of the table that each type of row belongs to."""


def _schema(fields: tuple[str, ...], **types: "pyarrow.DataType") -> "pyarrow.Schema":
    import pyarrow as pa

    assert tuple(types) == fields, "the columns are the fields of the row"
    return pa.schema(list(types.items()), metadata={"priocast.schema_version": str(SCHEMA_VERSION)})


def to_table(kind: type[TraceRow], rows: Sequence[TraceRow]) -> "pyarrow.Table":
    """Rows of one type as an Arrow table."""
    import pyarrow as pa

    schema = TABLES[kind][1]()
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def write_segment(directory: Path, name: str, rows: Iterable[TraceRow]) -> None:
    """Write rows as one complete segment of each table that they belong to."""
    for kind, of_table in by_table(rows).items():
        write_table(directory, name, kind, to_table(kind, of_table))


def by_table(rows: Iterable[TraceRow]) -> dict[type[TraceRow], list[TraceRow]]:
    """The rows by their type."""
    found: dict[type[TraceRow], list[TraceRow]] = {}
    for row in rows:
        found.setdefault(type(row), []).append(row)
    return found


def write_table(run: Path, name: str, kind: type[TraceRow], table: "pyarrow.Table") -> None:
    """Write a segment of the table that rows of this type belong to."""
    from pyarrow import parquet

    directory = run / TABLES[kind][0]
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / f".{name}.part"
    try:
        parquet.write_table(table, part, compression="zstd", write_page_checksum=True)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.rename(directory / f"{name}.parquet")


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the description of a run; members that share a directory must agree on it.

    It is written to a temporary file and renamed: members start at the same time, and none may read half of
    it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / MANIFEST).exists():
        with TemporaryDirectory(dir=directory, prefix=".") as aside:
            whole = Path(aside) / MANIFEST
            whole.write_text(json.dumps(msgspec.to_builtins(manifest), indent=2) + "\n")
            whole.rename(directory / MANIFEST)
    found = read_manifest(directory)
    if (found.run, found.group, found.order) != (manifest.run, manifest.group, manifest.order):
        raise ForeignTrace(
            f"{directory} already contains run {found.run!r} of group {found.group!r}: "
            "choose another directory for this run"
        )


def read_manifest(directory: Path) -> Manifest:
    """Read the description of a run."""
    path = directory / MANIFEST
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        raise UnreadableTrace(
            f"{directory} is not a run directory: it has no {MANIFEST} (give the directory that 'priocast "
            "demo' or 'priocast node --trace' wrote)"
        ) from None
    except (OSError, ValueError) as error:
        raise UnreadableTrace(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise ForeignTrace(f"{path} does not describe a Priocast run")
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise ForeignTrace(
            f"{path} has trace schema version {raw.get('schema_version')}, and this release reads version "
            f"{SCHEMA_VERSION}: use the release that wrote the trace, or record the run again"
        )
    try:
        return msgspec.convert(raw, Manifest)
    except msgspec.ValidationError as error:
        raise UnreadableTrace(f"{path} is not a complete manifest: {error}") from error


def find_runs(path: Path) -> list[Path]:
    """The run directories at `path`: the directory itself, or those directly below it, by name."""
    if (path / MANIFEST).exists():
        return [path]
    runs = sorted(child.parent for child in path.glob(f"*/{MANIFEST}"))
    if not runs:
        read_manifest(path)
    return runs


def find_segments(directory: Path) -> RunSegments:
    """The segments of a run, each checked to be undamaged and to have the expected columns."""
    return RunSegments(*(_checked(directory / name, schema()) for name, schema in TABLES.values()))


def _checked(directory: Path, expected: "pyarrow.Schema") -> tuple[Path, ...]:
    paths = tuple(sorted(directory.glob("*.parquet")))
    for path in paths:
        if not read_segment(path).schema.equals(expected):
            raise ForeignTrace(
                f"{path} does not have the columns of the table {directory.name!r} of a Priocast trace"
            )
    return paths


def read_segment(path: Path, columns: list[str] | None = None) -> "pyarrow.Table":
    """The rows of a segment, or some of the columns; raises UnreadableTrace if any byte of it is damaged.

    Checksums cover the pages. What describes the pages is checked by what follows from it.
    """
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns)
            table.validate(full=True)
            if table.num_rows != file.metadata.num_rows:
                raise ValueError(f"{table.num_rows} rows instead of {file.metadata.num_rows}")
            return table
    except (ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableTrace(f"{path} is damaged or not a Parquet file: {reason}") from error


def read_group_events(segments: Iterable[Path]) -> list[GroupEventRow]:
    """The rows of the table `group_events`, by process and step."""
    rows: list[GroupEventRow] = []
    for path in segments:
        table = read_segment(path)
        columns = [table[name].to_pylist() for name in GroupEventRow._fields]
        rows += [_as_row(values) for values in zip(*columns, strict=True)]
    return sorted(rows, key=by_process)


def by_process(row: TraceRow) -> tuple[str, int, int]:
    """Sorts rows by process and step."""
    return row.member, row.incarnation, row.step


def _as_row(values: tuple[object, ...]) -> GroupEventRow:
    """A row with tuples where Arrow has lists and structs."""
    return GroupEventRow._make(
        tuple(tuple(item.values()) if isinstance(item, dict) else item for item in value)
        if isinstance(value, list)
        else value
        for value in values
    )
