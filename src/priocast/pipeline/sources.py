"""Run directories as DataFrames: the events as they were recorded, and the messages that they speak of."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from pyarrow import parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
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
from priocast.trace.journal import recover
from priocast.trace.run_directory import arrow_schema, find_runs, read_manifest, segments
from priocast.trace.schema import Manifest

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
class Run:
    """One run directory that was found whole."""

    directory: Path
    manifest: Manifest
    segments: tuple[Path, ...]
    events: int

    @property
    def name(self) -> str:
        return self.manifest.run

    @property
    def primary(self) -> bool:
        """Whether only one side of a cut goes on."""
        return self.manifest.policy == _PRIMARY

    @property
    def safe(self) -> bool:
        """Whether it delivers every message only when all members of the view hold it."""
        return self.manifest.delivery == _SAFE

    @property
    def has_one_clock(self) -> bool:
        """Whether the times of different members can be compared."""
        return self.manifest.clock != _LOCAL

    @property
    def loses_nothing(self) -> bool:
        """Whether also a process that crashed left a whole record: a simulated one does."""
        return self.manifest.clock == _VIRTUAL


def open_runs(path: Path) -> list[Run]:
    """The runs at `path`, each checked before Spark is troubled with it.

    What members left that were killed is made part of the trace first.
    """
    runs = []
    directory_of: dict[str, Path] = {}
    for directory in find_runs(path.resolve()):
        manifest = read_manifest(directory)
        if manifest.prioritised:
            parse_starvation(manifest.starvation)
        there = directory_of.setdefault(manifest.run, directory)
        if there != directory:
            raise InvalidInput(
                f"{there} and {directory} are both called run {manifest.run!r}: verify one at a time"
            )
        recover(directory)
        paths = tuple(segments(directory))
        events = sum(parquet.read_metadata(path).num_rows for path in paths)
        runs.append(Run(directory, manifest, paths, events))
    return runs


def events_schema() -> StructType:
    """The trace's schema as Spark has it; in Spark a dictionary column is a plain string."""
    return StructType([StructField(field.name, _spark_type(field.type)) for field in arrow_schema()])


def _spark_type(arrow_type: pyarrow.DataType) -> DataType:
    if pyarrow.types.is_dictionary(arrow_type):
        return _spark_type(arrow_type.value_type)
    return _SPARK_TYPES[arrow_type]


def read_events(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Every row of every run, with what its run and its process (one life of a member) add to its meaning.

    `view_print` stands for the name of the view, which takes two columns; `safe` includes what the whole run
    delivers safely. All files are one scan, so that a thousand runs make no larger plan than one.
    """
    paths = [_GLOB_CHARACTERS.sub(r"\\\g<0>", str(path)) for run in runs for path in run.segments]
    return (
        spark.read.schema(events_schema())
        .parquet(*paths)
        .withColumn("file", sf.col("_metadata.file_path"))
        .join(sf.broadcast(_describe_files(spark, runs)), "file", "left")
        .withColumns(
            {
                "process": process_id("member", "incarnation"),
                "view_print": sf.xxhash64("view", "coordinator"),
                "safe": sf.col("safe") | sf.col("all_safe"),
            }
        )
        .drop("file", "all_safe")
    )


def _describe_files(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """One row for each file: the run that it is of, and how that run delivers."""
    rows = [
        (name, run.name, run.safe) for run in runs for path in run.segments for name in _as_spark_names(path)
    ]
    return spark.createDataFrame(rows, _FILES_SCHEMA)


def _as_spark_names(path: Path) -> tuple[str, ...]:
    """The names that Spark may have for a file: a URL, escaped as Java does, with or without a host."""
    escaped = _NOT_IN_JAVA_PATHS.sub(lambda match: f"%{ord(match[0]):02X}", str(path))
    return f"file:{escaped}", f"file://{escaped}"


def explode_batches(rows: DataFrame) -> DataFrame:
    """One row for each message of each batch row: its `number`, its `priority`, its `index` in the batch."""
    asked_for = sf.conv(sf.hex(sf.substring("priorities", sf.col("index") + 1, sf.lit(1))), 16, 10).cast(
        "int"
    )
    return (
        rows.where(sf.col("count") > 0)  # a view has no messages
        .withColumn("index", sf.explode(sf.sequence(sf.lit(0), sf.col("count") - 1)))
        .withColumn("number", sf.col("first") + sf.col("index"))
        .withColumn("priority", sf.when(sf.length("priorities") > 0, asked_for).otherwise(sf.col("level")))
    )


def messages(events: DataFrame) -> DataFrame:
    """What happened to each message: the events of batches, one by one."""
    return as_messages(explode_batches(events))


def as_messages(exploded: DataFrame) -> DataFrame:
    """Of exploded events, what there is to know of each message; each has a position of its own."""
    position = sf.col("position")
    return exploded.select(
        *MESSAGE_KEY,
        "priority",
        "process",
        "view",
        "coordinator",
        "view_print",
        "safe",
        "to",
        "step",
        "index",
        "time_ns",
        "event",
        sf.when(position >= 0, position + sf.col("index")).otherwise(position).alias("position"),
    )


def process_id(name: str, incarnation: str) -> Column:
    """A process as `ProcessId` writes it."""
    return sf.concat(sf.col(name), sf.lit("#"), sf.col(incarnation))


def message_id() -> Column:
    """A message as `MessageId` writes it."""
    return sf.concat(
        process_id("sender", "sender_incarnation"),
        sf.lit("/"),
        sf.col("level"),
        sf.lit("/"),
        sf.col("number"),
    )


def view_id() -> Column:
    """A view as `ViewId` writes it."""
    return sf.concat(sf.col("view"), sf.lit("@"), sf.col("coordinator"))
