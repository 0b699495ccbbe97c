"""A run on disk: a directory with `manifest.json` and the members' rows as Parquet segments in `events/`.

Segments are written aside and renamed when they are whole, so a reader never sees half of one, and a
process that is killed loses only what it had not yet closed.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from priocast.core.errors import ForeignTrace, UnreadableTrace
from priocast.trace.schema import FORMAT, SCHEMA_VERSION, Manifest, Row

if TYPE_CHECKING:
    import pyarrow

MANIFEST = "manifest.json"
EVENTS = "events"


def arrow_schema() -> "pyarrow.Schema":
    """The Parquet schema of the rows."""
    import pyarrow as pa

    dictionary = pa.dictionary(pa.int32(), pa.string())
    types = {
        "member": dictionary,
        "incarnation": pa.int64(),
        "view": pa.int64(),
        "coordinator": dictionary,
        "step": pa.int64(),
        "time_ns": pa.int64(),
        "event": dictionary,
        "packet": dictionary,
        "peer": dictionary,
        "sender": dictionary,
        "sender_incarnation": pa.int64(),
        "level": pa.int32(),
        "first": pa.int64(),
        "count": pa.int32(),
        "priorities": pa.binary(),
        "safe": pa.bool_(),
        "to": dictionary,
        "position": pa.int64(),
        "bytes": pa.int64(),
        "backlog": pa.int64(),
        "order": dictionary,
    }
    assert tuple(types) == Row._fields
    return pa.schema(list(types.items()), metadata={"priocast.schema_version": str(SCHEMA_VERSION)})


def to_table(rows: list[Row]) -> "pyarrow.Table":
    """Rows as an Arrow table."""
    import pyarrow as pa

    schema = arrow_schema()
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def write_segment(directory: Path, name: str, rows: list[Row]) -> Path:
    """Write rows as one whole segment, or not at all."""
    return write_table(directory, name, to_table(rows))


def write_table(directory: Path, name: str, table: "pyarrow.Table") -> Path:
    """Write a table of rows as one whole segment, or not at all."""
    from pyarrow import parquet

    events = directory / EVENTS
    events.mkdir(parents=True, exist_ok=True)
    part, whole = events / f".{name}.part", events / f"{name}.parquet"
    parquet.write_table(table, part, compression="zstd")
    part.rename(whole)
    return whole


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write what the run is; members that share a directory must agree on it.

    It is written aside and renamed: members start at the same time, and none may read half of it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / MANIFEST).exists():
        with TemporaryDirectory(dir=directory, prefix=".") as aside:
            whole = Path(aside) / MANIFEST
            whole.write_text(json.dumps(msgspec.to_builtins(manifest), indent=2) + "\n")
            whole.rename(directory / MANIFEST)
    there = read_manifest(directory)
    if (there.run, there.group, there.order) != (manifest.run, manifest.group, manifest.order):
        raise ForeignTrace(
            f"{directory} already holds run {there.run!r} of group {there.group!r}: "
            "give this run a directory of its own"
        )


def read_manifest(directory: Path) -> Manifest:
    """Read what the run is, or say why it cannot be read."""
    path = directory / MANIFEST
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        raise UnreadableTrace(
            f"{directory} is not a run directory: it has no {MANIFEST} (name the directory that 'priocast "
            "demo' or 'priocast node --trace' wrote)"
        ) from None
    except (OSError, ValueError) as error:
        raise UnreadableTrace(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise ForeignTrace(f"{path} does not describe a Priocast run")
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise ForeignTrace(
            f"{path} has schema version {raw.get('schema_version')}, this Priocast reads version "
            f"{SCHEMA_VERSION}: use the release that wrote it"
        )
    try:
        return msgspec.convert(raw, Manifest)
    except msgspec.ValidationError as error:
        raise UnreadableTrace(f"{path} is not a whole manifest: {error}") from error


def find_runs(path: Path) -> list[Path]:
    """The run directories at `path`: itself, or those right below it, by name."""
    if (path / MANIFEST).exists():
        return [path]
    runs = sorted(child.parent for child in path.glob(f"*/{MANIFEST}"))
    if not runs:
        read_manifest(path)
    return runs


def segments(directory: Path) -> list[Path]:
    """The Parquet files of a run, each checked to be whole and of our schema."""
    from pyarrow import ArrowException, parquet

    expected = arrow_schema()
    paths = sorted((directory / EVENTS).glob("*.parquet"))
    if not paths:
        raise UnreadableTrace(f"{directory / EVENTS} holds no trace: did the run end before it began?")
    for path in paths:
        try:
            found = parquet.read_schema(path)
        except (ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise UnreadableTrace(f"{path} is damaged or not Parquet: {reason}") from error
        if not found.equals(expected):
            raise ForeignTrace(f"{path} is Parquet, but does not have the columns of a Priocast trace")
    return paths
