"""Run directories as DataFrames: the events as they were recorded, and the messages that they speak of."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow
from pyarrow import parquet
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from priocast.core.errors import InvalidInput
from priocast.core.starvation import Ageing, PeriodicFlush, parse_starvation
from priocast.trace.run_directory import arrow_schema, find_runs, read_manifest, segments
from priocast.trace.schema import VIEW, Manifest

_RUNS_SCHEMA = "run string, orderer string, prioritised boolean, ageing_ns long, flush_ns long"
_SPARK_TYPES = {
    pyarrow.string(): T.StringType,
    pyarrow.binary(): T.BinaryType,
    pyarrow.int32(): T.IntegerType,
    pyarrow.int64(): T.LongType,
}

MESSAGE_KEY = ("run", "sender", "sender_incarnation", "level", "number")


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


def open_runs(path: Path) -> list[Run]:
    """The runs at `path`, each checked before Spark is troubled with it."""
    runs = []
    directory_of: dict[str, Path] = {}
    for directory in find_runs(path):
        manifest = read_manifest(directory)
        if manifest.prioritised:
            parse_starvation(manifest.starvation)
        there = directory_of.setdefault(manifest.run, directory)
        if there != directory:
            raise InvalidInput(f"{there} and {directory} are both called run {manifest.run!r}: verify one at a time")
        paths = tuple(segments(directory))
        events = sum(parquet.read_metadata(path).num_rows for path in paths)
        runs.append(Run(directory, manifest, paths, events))
    return runs


def events_schema() -> T.StructType:
    """The trace's schema as Spark has it; in Spark a dictionary column is a plain string."""
    return T.StructType([T.StructField(field.name, _spark_type(field.type)) for field in arrow_schema()])


def _spark_type(arrow_type: pyarrow.DataType) -> T.DataType:
    if pyarrow.types.is_dictionary(arrow_type):
        return _spark_type(arrow_type.value_type)
    return _SPARK_TYPES[arrow_type]()


def read_events(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Every row of every run, with the run it belongs to and the process (one life of a member) that wrote it."""
    reader = spark.read.schema(events_schema())
    tables = [
        reader.parquet(*map(str, run.segments)).withColumn("run", F.lit(run.name)) for run in runs
    ]
    return reduce(DataFrame.unionByName, tables).withColumn("process", process_id("member", "incarnation"))


def describe_runs(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """One row for each run: what its manifest says about where and how its queue orders."""
    rows = []
    for manifest in (run.manifest for run in runs):
        policy = parse_starvation(manifest.starvation) if manifest.prioritised else None
        ageing_ns = policy.step_ns if isinstance(policy, Ageing) else None
        flush_ns = policy.period_ns if isinstance(policy, PeriodicFlush) else None
        rows.append((manifest.run, manifest.orderer, manifest.prioritised, ageing_ns, flush_ns))
    return spark.createDataFrame(rows, _RUNS_SCHEMA)


def explode_batches(rows: DataFrame) -> DataFrame:
    """One row for each message of each batch row, with its `number`, its `priority` and its `index` in the batch."""
    asked_for = F.conv(F.hex(F.substring("priorities", F.col("index") + 1, F.lit(1))), 16, 10).cast("int")
    return (
        rows.withColumn("index", F.explode(F.sequence(F.lit(0), F.col("count") - 1)))
        .withColumn("number", F.col("first") + F.col("index"))
        .withColumn("priority", F.when(F.length("priorities") > 0, asked_for).otherwise(F.col("level")))
    )


def messages(events: DataFrame) -> DataFrame:
    """What happened to each message: the events of batches, one by one."""
    position = F.col("position")
    return explode_batches(events).select(
        *MESSAGE_KEY,
        "priority",
        "process",
        "view",
        "step",
        "index",
        "time_ns",
        "event",
        F.when(position >= 0, position + F.col("index")).otherwise(position).alias("position"),
    )


def views(events: DataFrame) -> DataFrame:
    """One row for each view of each run: its members, those that `stayed` for the next view, its first position.

    `members_print` is what the members' hashes come to: who delivered a message can be compared with it.
    """
    members = events.where(F.col("event") == VIEW).select(
        "run", "view", "position", F.explode(F.split("peer", ",")).alias("process")
    )
    by_number = Window.partitionBy("run").orderBy("view")
    return (
        members.groupBy("run", "view", "process")
        .agg(F.min("position").alias("position"))
        .groupBy("run", "view")
        .agg(
            F.min("position").alias("first_position"),
            F.sort_array(F.collect_set("process")).alias("members"),
            F.bit_xor(F.xxhash64("process")).alias("members_print"),
        )
        .withColumn("next_members", F.lead("members").over(by_number))
        .withColumn(
            "stayed", F.coalesce(F.array_intersect("members", "next_members"), F.col("members"))
        )
        .drop("next_members")
    )


def process_id(name: str, incarnation: str) -> Column:
    """A process as `ProcessId` writes it."""
    return F.concat(F.col(name), F.lit("#"), F.col(incarnation))


def message_id() -> Column:
    """A message as `MessageId` writes it."""
    return F.concat(process_id("sender", "sender_incarnation"), F.lit("/"), F.col("level"), F.lit("/"), F.col("number"))
