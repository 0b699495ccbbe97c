"""A run on disk: a directory with `manifest.json` and the members' rows as Parquet segments.

The segments of each table are in a directory of their own (`messages/`, `group_events/`, `services/`). A
segment is written to a temporary file and renamed when it is complete, so a reader never sees half of one,
and a process that is killed loses only what it had not yet written. The pages of a segment have checksums:
without them, a third of all flipped bits read as other rows.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from priocast.core.errors import ForeignTrace, UnreadableTrace
from priocast.trace.columns import TABLE_NAMES, table_schema, to_table
from priocast.trace.remote_directory import RemoteDirectory, RunLocation
from priocast.trace.schema import FORMAT, SCHEMA_VERSION, GroupEventRow, Manifest, TraceRow

if TYPE_CHECKING:
    import pyarrow

MANIFEST = "manifest.json"
JOURNALS = "journals"


class RunSegments(NamedTuple):
    """The Parquet files of a run, by table."""

    messages: tuple[Path, ...]
    group_events: tuple[Path, ...]
    services: tuple[Path, ...]


def write_segment(directory: Path, run: str, name: str, rows: Iterable[TraceRow]) -> None:
    """Write rows of a run as one complete segment of each table that they belong to."""
    for kind, of_table in by_table(rows).items():
        write_table(directory, name, kind, to_table(kind, of_table, run))


def by_table(rows: Iterable[TraceRow]) -> dict[type[TraceRow], list[TraceRow]]:
    """The rows by their type."""
    found: dict[type[TraceRow], list[TraceRow]] = {}
    for row in rows:
        found.setdefault(type(row), []).append(row)
    return found


def write_table(run: RunLocation, name: str, kind: type[TraceRow], table: "pyarrow.Table") -> None:
    """Write a segment of the table that rows of this type belong to."""
    from pyarrow import parquet

    def write(file: Any) -> None:
        parquet.write_table(table, file, compression="zstd", write_page_checksum=True)

    if isinstance(run, RemoteDirectory):
        run.write(f"{TABLE_NAMES[kind]}/{name}.parquet", write)
        return
    directory = run / TABLE_NAMES[kind]
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / f".{name}.part"
    try:
        write(part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.rename(directory / f"{name}.parquet")


def write_manifest(directory: RunLocation, manifest: Manifest) -> None:
    """Write the description of a run; members that share a directory must agree on it.

    It is written to a temporary file and renamed: members start at the same time, and none may read half of
    it.
    """
    text = json.dumps(msgspec.to_builtins(manifest), indent=2) + "\n"
    if isinstance(directory, RemoteDirectory):
        if directory.read(MANIFEST) is None:
            directory.write(MANIFEST, lambda file: file.write(text.encode()))
        found = parse_manifest(f"{directory}/{MANIFEST}", directory.read(MANIFEST) or b"")
    else:
        _write_local_manifest(directory, text)
        found = read_manifest(directory)
    if (found.run, found.group, found.order) != (manifest.run, manifest.group, manifest.order):
        raise ForeignTrace(
            f"{directory} already contains run {found.run!r} of group {found.group!r}: "
            "choose another directory for this run"
        )


def _write_local_manifest(directory: Path, text: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / MANIFEST).exists():
        with TemporaryDirectory(dir=directory, prefix=".") as aside:
            whole = Path(aside) / MANIFEST
            whole.write_text(text)
            whole.rename(directory / MANIFEST)


def read_manifest(directory: Path) -> Manifest:
    """Read the description of a run."""
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise not_a_run(directory) from None
    except NotADirectoryError:
        raise UnreadableTrace(
            f"{directory} is {'a file' if directory.is_file() else 'below a file'}, not a run directory"
        ) from None
    except OSError as error:
        raise UnreadableTrace(f"{path} cannot be read: {error}") from error
    return parse_manifest(str(path), raw)


def not_a_run(location: object) -> UnreadableTrace:
    """The error about a location at which there is no run."""
    return UnreadableTrace(
        f"{location} is not a run directory: it has no {MANIFEST} (give the directory that 'priocast "
        "demo' or 'priocast node --trace' wrote)"
    )


def parse_manifest(path: str, content: bytes) -> Manifest:
    """The description of a run in a file."""
    try:
        raw = json.loads(content)
    except ValueError as error:
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
    return RunSegments(
        *(_checked(directory / name, table_schema(kind)) for kind, name in TABLE_NAMES.items())
    )


def _checked(directory: Path, expected: "pyarrow.Schema") -> tuple[Path, ...]:
    paths = tuple(sorted(directory.glob("*.parquet")))
    for path in paths:
        table = read_segment(path)
        if not table.schema.equals(expected):
            raise ForeignTrace(
                f"{path} does not have the columns of the table {directory.name!r} of a Priocast trace"
            )
        for version in table["schema_version"].unique().to_pylist():
            if version != SCHEMA_VERSION:
                raise ForeignTrace(
                    f"{path} has trace schema version {version}, and this release reads version "
                    f"{SCHEMA_VERSION}: use the release that wrote the trace, or record the run again"
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
    return sorted((row for path in segments for row in to_group_events(read_segment(path))), key=by_process)


def to_group_events(table: "pyarrow.Table") -> list[GroupEventRow]:
    """The rows of an Arrow table."""
    columns = [table[name].to_pylist() for name in GroupEventRow._fields]
    return [_as_row(values) for values in zip(*columns, strict=True)]


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
