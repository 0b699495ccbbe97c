"""Runs as DataFrames: rows of batches and services as they were recorded, and messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.core.errors import InvalidInput, UnreadableTrace
from priocast.core.starvation import parse_starvation
from priocast.pipeline.run_files import RunFiles
from priocast.pipeline.spark_types import without_dictionaries
from priocast.pipeline.storage_errors import storage_errors
from priocast.trace.columns import SEGMENT_COLUMNS, to_table
from priocast.trace.missing_records import check_records
from priocast.trace.remote_directory import without_secrets
from priocast.trace.run_directory import by_process, to_group_events
from priocast.trace.schema import GroupEventRow, Manifest, MessageRow, ServiceRow, TraceRow

_VIRTUAL = "virtual"
_LOCAL = "local"
_SAFE = "safe"
_PRIMARY = "primary"

STREAM_KEY = ("run", "sender", "sender_incarnation", "level")
MESSAGE_KEY = (*STREAM_KEY, "number")


@dataclass(frozen=True)
class StoredRun:
    """One run whose files were found complete: where it is, and how many `events` it recorded.

    The table `group_events` is small, and is kept here. `has_services` says whether any message was sent with
    a quality of service.
    """

    location: str
    manifest: Manifest
    group_events: tuple[GroupEventRow, ...]
    events: int
    has_services: bool = False

    @property
    def name(self) -> str:
        return self.manifest.run

    @property
    def primary(self) -> bool:
        """Whether only the side with a quorum continues after a network partition."""
        return self.manifest.policy == _PRIMARY

    @property
    def safe(self) -> bool:
        """Whether it delivers every message only when all members of the view have received it."""
        return self.manifest.delivery == _SAFE

    @property
    def has_one_clock(self) -> bool:
        """Whether the times of different members can be compared."""
        return self.manifest.clock != _LOCAL

    @property
    def loses_nothing(self) -> bool:
        """Whether the record of a crashed process is complete, too: in a simulated run it is."""
        return self.manifest.clock == _VIRTUAL


@dataclass(frozen=True)
class StoredRuns:
    """The runs at a location, and the tables of all of them together.

    The tables have the rows of all segments, and those that only journals have.
    """

    runs: tuple[StoredRun, ...]
    messages: DataFrame
    services: DataFrame
    group_events: DataFrame

    @property
    def spark(self) -> SparkSession:
        return self.messages.sparkSession


def open_runs(spark: SparkSession, location: str | Path) -> StoredRuns:
    """The runs at a path or URL: the one there, or those directly below it, by name."""
    with storage_errors(str(location)):
        files = RunFiles(spark, str(location))
        _check_manifests(files.manifests)
        counts, events, journalled = files.count_rows(), files.read_group_events(), files.read_journals()
    runs = []
    for directory, manifest in files.manifests.items():
        unsaved = journalled.get(directory, [])
        group_events = [row for row in unsaved if isinstance(row, GroupEventRow)]
        others = len(unsaved) - len(group_events)
        if directory in events:
            group_events += to_group_events(events[directory])
        run = StoredRun(
            location=without_secrets(directory),
            manifest=manifest,
            group_events=tuple(sorted(group_events, key=by_process)),
            events=len(group_events) + counts.get(directory, 0) + others,
            has_services=files.has_services(directory) or any(isinstance(row, ServiceRow) for row in unsaved),
        )
        if not run.events:
            raise UnreadableTrace(
                f"{run.location} contains no rows: the run ended before it recorded anything"
            )
        runs.append(run)
    unsaved_of = {files.manifests[directory].run: rows for directory, rows in journalled.items()}
    tables = (
        _with_unsaved(files.tables[kind].rows, kind, unsaved_of)
        for kind in (MessageRow, ServiceRow, GroupEventRow)
    )
    stored = StoredRuns(tuple(runs), *tables)
    with storage_errors(str(location)):
        for run in stored.runs:
            check_records(
                run.location,
                run.manifest,
                run.group_events,
                partial(_recorders, stored, run.name),
                partial(_processes, stored.messages, run.name, "sender", "sender_incarnation"),
            )
    return stored


def _recorders(stored: StoredRuns, run: str) -> set[str]:
    """The processes that recorded messages or services of a run."""
    tables = (stored.messages, stored.services)
    return {each for table in tables for each in _processes(table, run, "member", "incarnation")}


def _processes(rows: DataFrame, run: str, name: str, incarnation: str) -> set[str]:
    """The processes in two columns of the rows of a run."""
    found = rows.where(sf.col("run") == run).select(process_id(name, incarnation).alias("id")).distinct()
    return {row["id"] for row in found.collect()}


def _with_unsaved(rows: DataFrame, kind: type[TraceRow], unsaved_of: dict[str, list[TraceRow]]) -> DataFrame:
    """The rows of a table in segments, and those that only the journals of the runs have."""
    for run, unsaved in unsaved_of.items():
        of_table = [row for row in unsaved if isinstance(row, kind)]
        if of_table:
            more = without_dictionaries(to_table(kind, of_table, run))
            rows = rows.unionByName(rows.sparkSession.createDataFrame(more))
    return rows


def _check_manifests(manifests: dict[str, Manifest]) -> None:
    directories: dict[str, str] = {}
    for directory, manifest in manifests.items():
        if manifest.prioritised:
            parse_starvation(manifest.starvation)
        other = directories.setdefault(manifest.run, directory)
        if other != directory:
            raise InvalidInput(
                f"{without_secrets(other)} and {without_secrets(directory)} are both named run "
                f"{manifest.run!r}: verify one at a time"
            )


def read_batches(stored: StoredRuns, keep: Sequence[str] = ()) -> DataFrame:
    """The rows of the table `messages` of all runs, one for each event of a batch.

    Each row has its `run` and its `process` (one incarnation of a member). `view_hash` replaces the name of
    the view, which takes two columns, `process_hash` the process and its run, `sender_hash` the sender and
    its run: whatever is grouped or joined millions of times is a number. `safe` is also true if the whole run
    delivers safely. Of the columns that belong to a segment, only those to `keep` are there.
    """
    return _with_process(stored.messages, keep).withColumns(
        {
            "view_hash": sf.xxhash64("view", "coordinator"),
            "process_hash": sf.xxhash64("run", "member", "incarnation"),
            "sender_hash": sender_hash(),
            "safe": sf.col("safe") | is_of([run for run in stored.runs if run.safe], stored.runs),
        }
    )


def is_of(chosen: Sequence[StoredRun], runs: Sequence[StoredRun]) -> Column:
    """Whether a row is of one of the chosen runs."""
    if len(chosen) in (0, len(runs)):
        return sf.lit(bool(chosen))
    return sf.col("run").isin([run.name for run in chosen])


def read_services(stored: StoredRuns, runs: Sequence[StoredRun]) -> DataFrame:
    """The rows of the table `services` of some runs, each with its `run` and its `process`."""
    rows = _with_process(stored.services)
    return (
        rows if len(runs) == len(stored.runs) else rows.where(sf.col("run").isin([run.name for run in runs]))
    )


def _with_process(rows: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    recorded = rows.drop(*(column.name for column in SEGMENT_COLUMNS if column.name not in keep))
    return recorded.withColumn("process", process_id("member", "incarnation"))


def explode_batches(rows: DataFrame) -> DataFrame:
    """One row for each message of each batch row: its `number`, its `priority`, its `index` in the batch."""
    own = sf.conv(sf.hex(sf.substring("priorities", sf.col("index") + 1, sf.lit(1))), 16, 10).cast("int")
    return (
        rows.withColumn("index", sf.explode(sf.sequence(sf.lit(0), sf.col("count") - 1)))
        .withColumn("number", sf.col("first") + sf.col("index"))
        .withColumn("priority", sf.when(sf.length("priorities") > 0, own).otherwise(sf.col("level")))
    )


def messages(batches: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """One row for each event of each message."""
    return as_messages(explode_batches(batches), keep)


def as_messages(exploded: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """The columns of exploded rows that describe a message, with its own position, and those to `keep`."""
    position = sf.col("position")
    return exploded.select(
        *MESSAGE_KEY,
        "sender_hash",
        "priority",
        "process",
        "process_hash",
        "view",
        "coordinator",
        "view_hash",
        "safe",
        "to",
        "step",
        "index",
        "time_ns",
        "event",
        sf.when(position >= 0, position + sf.col("index")).otherwise(position).alias("position"),
        *keep,
    )


def process_id(name: str, incarnation: str) -> Column:
    """A process as `ProcessId` is written."""
    return sf.concat(sf.col(name), sf.lit("#"), sf.col(incarnation))


def hash_of_process(run: str, process: Column) -> Column:
    """The `process_hash` of a process that is given as `ProcessId` is written."""
    incarnation = sf.regexp_extract(process, "#([0-9]+)$", 1).try_cast("long")
    return sf.xxhash64(sf.col(run), sf.regexp_extract(process, "^(.*)#", 1), incarnation)


def message_id() -> Column:
    """A message as `MessageId` is written."""
    return sf.concat(
        process_id("sender", "sender_incarnation"),
        sf.lit("/"),
        sf.col("level"),
        sf.lit("/"),
        sf.col("number"),
    )


def message_hash() -> Column:
    """A message as one number, for comparing many of them; the hash of its sender must be there."""
    return sf.xxhash64("sender_hash", "level", "number")


def sender_hash() -> Column:
    """The sender of a message and its run as one number."""
    return sf.xxhash64("run", "sender", "sender_incarnation")


def view_id() -> Column:
    """A view as `ViewId` is written."""
    return sf.concat(sf.col("view"), sf.lit("@"), sf.col("coordinator"))
