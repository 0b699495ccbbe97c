"""What priorities cost: delivery times, prioritisation times and memory of each cell of the cost study.

The rows are own messages that a member delivered, steps of its protocol, and what it used (the files of
`study/cost_files.py`). Delivery time is what the application sees: from its call until its own delivery.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

CELL = ("order", "variant", "members", "rate")
_SHARES = (0.25, 0.5, 0.75, 0.99)
_MIB = 1 << 20
_SLICES = 100
_SLICE_SECONDS_MIN = 1.0


@dataclass(frozen=True)
class CellFiles:
    """Where the rows of the cells are: a file of each table for each cell."""

    deliveries: Sequence[Path]
    steps: Sequence[Path]
    members: Sequence[Path]
    memory: Sequence[Path]


@dataclass(frozen=True)
class MemoryLine:
    """The resident memory of a cell's members over the time after the warm-up: their mean in each slice."""

    order: str
    variant: str
    members: int
    rate: int
    seconds: list[float]
    mean_mib: list[float]


@dataclass(frozen=True)
class CostRow:
    """One cell: an order, plain or prioritised, with a number of members and a rate per member.

    Prioritisation times are None where the order has no queue whose steps are measured. `collections` is the
    mean number of garbage collections of a member, `cpu_us` its processor time per message. `foreign_cores`
    is how many processors other programs kept busy meanwhile.
    """

    order: str
    variant: str
    members: int
    rate: int
    messages: int
    mean_ms: float
    first_ms: float
    median_ms: float
    third_ms: float
    p99_ms: float
    prioritisation_us: float | None
    prioritisation_median_us: float | None
    collections: float
    memory_mib: float
    memory_max_mib: float
    cpu_us: float
    foreign_cores: float

    @property
    def cell(self) -> tuple[str, str, int, int]:
        return self.order, self.variant, self.members, self.rate


def cost_rows(spark: SparkSession, files: CellFiles, deliveries: int, dropped: int) -> list[CostRow]:
    """The cells of a study in which each member delivered so many messages, without those it drops."""
    deliveries_of, steps, used_by = (
        _read(spark, paths) for paths in (files.deliveries, files.steps, files.members)
    )
    timed = {_cell(row): row for row in delivery_times(deliveries_of, dropped).collect()}
    stepped = {_cell(row): row for row in prioritisation_times(steps).collect()}
    used = {_cell(row): row for row in resources(used_by).collect()}
    counted = deliveries - dropped
    return [_row(cell, timed[cell], stepped.get(cell), used[cell], counted) for cell in sorted(timed)]


def delivery_times(rows: DataFrame, dropped: int) -> DataFrame:
    """Count, mean and quartiles of the messages that are not dropped, of all senders together."""
    shares = sf.array(*map(sf.lit, _SHARES))
    return (
        rows.where(sf.col("position") >= dropped)
        .groupBy(*CELL)
        .agg(
            sf.count("took_ns").alias("messages"),
            sf.mean("took_ns").alias("mean_ns"),
            sf.percentile("took_ns", shares).alias("within_ns"),
        )
    )


def prioritisation_times(rows: DataFrame) -> DataFrame:
    """The time that a message takes to enter and to leave the queue: the sum of the two means, or medians."""
    per_message = sf.col("took_ns") / sf.col("messages")
    of_part = rows.groupBy(*CELL, "part").agg(
        (sf.sum("took_ns") / sf.sum("messages")).alias("mean_ns"),
        sf.percentile(per_message, sf.lit(0.5)).alias("median_ns"),
    )
    return of_part.groupBy(*CELL).agg(*(sf.sum(name).alias(name) for name in ("mean_ns", "median_ns")))


def resources(rows: DataFrame) -> DataFrame:
    """What a member used: means over the members, and the largest memory of any."""
    means = ("collections", "memory_bytes", "cpu_seconds", "foreign_cores")
    return rows.groupBy(*CELL).agg(
        *(sf.mean(name).alias(name) for name in means),
        sf.max("memory_bytes_max").alias("memory_bytes_max"),
    )


def memory_lines(spark: SparkSession, files: CellFiles) -> list[MemoryLine]:
    """Memory over time, a line for each cell."""
    found = memory_over_time(_read(spark, files.memory)).collect()
    lines = {_cell(row): MemoryLine(*_cell(row), [], []) for row in sorted(found, key=_cell)}
    for row in sorted(found, key=lambda row: float(row["slice"])):
        lines[_cell(row)].seconds.append(row["seconds"])
        lines[_cell(row)].mean_mib.append(row["mean_bytes"] / _MIB)
    return list(lines.values())


def memory_over_time(rows: DataFrame) -> DataFrame:
    """The mean resident memory of the members of a cell in each of up to 100 slices of its time."""
    longest = sf.max("after_seconds").over(Window.partitionBy(*CELL))
    slice_seconds = sf.greatest(sf.lit(_SLICE_SECONDS_MIN), longest / _SLICES)
    sliced = rows.withColumn("slice", sf.floor(sf.col("after_seconds") / slice_seconds))
    return sliced.groupBy(*CELL, "slice").agg(
        sf.mean("after_seconds").alias("seconds"), sf.mean("resident_bytes").alias("mean_bytes")
    )


def _read(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    return spark.read.parquet(*map(str, paths))


def _cell(row: Row) -> tuple[str, str, int, int]:
    return row["order"], row["variant"], row["members"], row["rate"]


def _row(
    cell: tuple[str, str, int, int], timed: Row, stepped: Row | None, used: Row, counted: int
) -> CostRow:
    first, median, third, p99 = (each / 1e6 for each in timed["within_ns"])
    return CostRow(
        *cell,
        messages=timed["messages"],
        mean_ms=timed["mean_ns"] / 1e6,
        first_ms=first,
        median_ms=median,
        third_ms=third,
        p99_ms=p99,
        prioritisation_us=None if stepped is None else stepped["mean_ns"] / 1e3,
        prioritisation_median_us=None if stepped is None else stepped["median_ns"] / 1e3,
        collections=used["collections"],
        memory_mib=used["memory_bytes"] / _MIB,
        memory_max_mib=used["memory_bytes_max"] / _MIB,
        cpu_us=used["cpu_seconds"] / counted * 1e6,
        foreign_cores=used["foreign_cores"],
    )
