"""Run directories as DataFrames: rows of batches and services as they were recorded, and messages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from pyarrow import parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from priocast.core.errors import InvalidInput
from priocast.core.starvation import parse_starvation
from priocast.trace.run_directory import find_runs, message_schema, read_manifest, service_schema
from priocast.trace.schema import GroupEventRow, Manifest, MessageRow, ServiceRow, TraceRow
from priocast.trace.stored_rows import find_rows

_SPARK_TYPES: dict[pyarrow.DataType, DataType] = {
    pyarrow.string(): StringType(),
    pyarrow.binary(): BinaryType(),
    pyarrow.bool_(): BooleanType(),
    pyarrow.int32(): IntegerType(),
    pyarrow.int64(): LongType(),
}
_FILES_SCHEMA = "file string, run string, all_safe boolean"
_NOT_IN_JAVA_PATHS = re.compile(r"[^A-Za-z0-9_\-!.~'()*,;:$&+=@/\u0080-\U0010ffff]")
_GLOB_CHARACTERS = re.compile(r"[\[\]{}*?\\]")

_VIRTUAL = "virtual"
_LOCAL = "local"
_SAFE = "safe"
_PRIMARY = "primary"

STREAM_KEY = ("run", "sender", "sender_incarnation", "level")
MESSAGE_KEY = (*STREAM_KEY, "number")


@dataclass(frozen=True)
class StoredRun:
    """One run directory that was found complete; `segments` are those of the table `messages`.

    The table `group_events` is small, and is read without Spark. `journalled` are the messages of killed
    members that are in no segment. The table `services` has `service_segments` and `journalled_services`.
    """

    directory: Path
    manifest: Manifest
    segments: tuple[Path, ...]
    group_events: tuple[GroupEventRow, ...]
    events: int
    journalled: tuple[MessageRow, ...] = ()
    service_segments: tuple[Path, ...] = ()
    journalled_services: tuple[ServiceRow, ...] = ()

    @property
    def has_services(self) -> bool:
        """Whether any message was sent with a quality of service."""
        return bool(self.service_segments or self.journalled_services)

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


def open_runs(path: Path) -> list[StoredRun]:
    """The runs at `path`, each checked before Spark reads it."""
    runs = []
    directory_of: dict[str, Path] = {}
    for directory in find_runs(path.resolve()):
        manifest = read_manifest(directory)
        if manifest.prioritised:
            parse_starvation(manifest.starvation)
        other = directory_of.setdefault(manifest.run, directory)
        if other != directory:
            raise InvalidInput(
                f"{other} and {directory} are both named run {manifest.run!r}: verify one at a time"
            )
        rows = find_rows(directory)
        segments = (*rows.message_segments, *rows.service_segments)
        saved = sum(parquet.read_metadata(path).num_rows for path in segments)
        unsaved = len(rows.journalled_messages) + len(rows.journalled_services)
        runs.append(
            StoredRun(
                directory,
                manifest,
                rows.message_segments,
                rows.group_events,
                len(rows.group_events) + saved + unsaved,
                rows.journalled_messages,
                rows.service_segments,
                rows.journalled_services,
            )
        )
    return runs


def spark_schema(schema: pyarrow.Schema) -> StructType:
    """The schema of a table in Spark, where a dictionary column is a plain string."""
    return StructType([StructField(field.name, _spark_type(field.type)) for field in schema])


def _spark_type(arrow_type: pyarrow.DataType) -> DataType:
    if pyarrow.types.is_dictionary(arrow_type):
        return _spark_type(arrow_type.value_type)
    if pyarrow.types.is_list(arrow_type):
        return ArrayType(_spark_type(arrow_type.value_type))
    return _SPARK_TYPES[arrow_type]


def read_batches(spark: SparkSession, runs: Sequence[StoredRun]) -> DataFrame:
    """The rows of the table `messages` of all runs, one for each event of a batch.

    Each row has its `run` and its `process` (one incarnation of a member). `view_hash` replaces the name of
    the view, which takes two columns. `safe` is also true if the whole run delivers safely.
    """
    segments = [path for run in runs for path in run.segments]
    journalled = [(run, row) for run in runs for row in run.journalled]
    rows = _read_rows(spark, runs, message_schema(), segments, journalled)
    return rows.withColumns(
        {
            "view_hash": sf.xxhash64("view", "coordinator"),
            "safe": sf.col("safe") | sf.col("all_safe"),
        }
    ).drop("all_safe")


def read_services(spark: SparkSession, runs: Sequence[StoredRun]) -> DataFrame:
    """The rows of the table `services` of all runs, each with its `run` and its `process`."""
    segments = [path for run in runs for path in run.service_segments]
    journalled = [(run, row) for run in runs for row in run.journalled_services]
    return _read_rows(spark, runs, service_schema(), segments, journalled).drop("all_safe")


def _read_rows(
    spark: SparkSession,
    runs: Sequence[StoredRun],
    schema: pyarrow.Schema,
    segments: Sequence[Path],
    journalled: Sequence[tuple[StoredRun, TraceRow]],
) -> DataFrame:
    """The rows of one table. All files are one scan: the plan for a thousand runs is that for one."""
    columns = spark_schema(schema)
    with_file = StructType([*columns, StructField("file", StringType())])
    unsaved = [(*row, str(run.directory)) for run, row in journalled]
    paths = [_GLOB_CHARACTERS.sub(r"\\\g<0>", str(path)) for path in segments]
    if not paths:
        return _with_run(spark.createDataFrame(unsaved, with_file), spark, runs)
    rows = spark.read.schema(columns).parquet(*paths)
    rows = rows.withColumn("file", sf.col("_metadata.file_path"))
    if unsaved:
        rows = rows.unionByName(spark.createDataFrame(unsaved, with_file))
    return _with_run(rows, spark, runs)


def _with_run(rows: DataFrame, spark: SparkSession, runs: Sequence[StoredRun]) -> DataFrame:
    return (
        rows.join(sf.broadcast(_describe_files(spark, runs)), "file", "left")
        .withColumn("process", process_id("member", "incarnation"))
        .drop("file")
    )


def _describe_files(spark: SparkSession, runs: Sequence[StoredRun]) -> DataFrame:
    """One row for each file, and for each directory: its run, and how that run delivers."""
    rows = [(str(run.directory), run.name, run.safe) for run in runs]
    rows += [
        (name, run.name, run.safe)
        for run in runs
        for path in (*run.segments, *run.service_segments)
        for name in _as_spark_names(path)
    ]
    return spark.createDataFrame(rows, _FILES_SCHEMA)


def _as_spark_names(path: Path) -> tuple[str, ...]:
    """The names that Spark may use for a file: a URL, escaped as Java does, with or without a host."""
    escaped = _NOT_IN_JAVA_PATHS.sub(lambda match: f"%{ord(match[0]):02X}", str(path))
    return f"file:{escaped}", f"file://{escaped}"


def explode_batches(rows: DataFrame) -> DataFrame:
    """One row for each message of each batch row: its `number`, its `priority`, its `index` in the batch."""
    own = sf.conv(sf.hex(sf.substring("priorities", sf.col("index") + 1, sf.lit(1))), 16, 10).cast("int")
    return (
        rows.withColumn("index", sf.explode(sf.sequence(sf.lit(0), sf.col("count") - 1)))
        .withColumn("number", sf.col("first") + sf.col("index"))
        .withColumn("priority", sf.when(sf.length("priorities") > 0, own).otherwise(sf.col("level")))
    )


def messages(batches: DataFrame) -> DataFrame:
    """One row for each event of each message."""
    return as_messages(explode_batches(batches))


def as_messages(exploded: DataFrame) -> DataFrame:
    """The columns of exploded rows that describe a message, with its own position."""
    position = sf.col("position")
    return exploded.select(
        *MESSAGE_KEY,
        "priority",
        "process",
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
    )


def process_id(name: str, incarnation: str) -> Column:
    """A process as `ProcessId` is written."""
    return sf.concat(sf.col(name), sf.lit("#"), sf.col(incarnation))


def message_id() -> Column:
    """A message as `MessageId` is written."""
    return sf.concat(
        process_id("sender", "sender_incarnation"),
        sf.lit("/"),
        sf.col("level"),
        sf.lit("/"),
        sf.col("number"),
    )


def view_id() -> Column:
    """A view as `ViewId` is written."""
    return sf.concat(sf.col("view"), sf.lit("@"), sf.col("coordinator"))
