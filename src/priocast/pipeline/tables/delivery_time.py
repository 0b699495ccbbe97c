"""Delivery time, as the cost paper defines it: from a message's broadcast to its delivery at its own sender.

Both times are read from the sender's clock, so the measurement means the same on any network.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.core.priority import NAMED_LEVELS
from priocast.pipeline.trace_tables import TraceTables

_QUARTILES = (0.25, 0.5, 0.75, 0.99)
_CURVE = (*(step / 200 for step in range(200)), 0.999, 1.0)
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}


@dataclass(frozen=True)
class DeliveryTime:
    """How long the messages of one priority took in one run; `curve` has (share delivered, within ms)."""

    run: str
    priority: int
    count: int
    mean_ms: float
    p25_ms: float
    median_ms: float
    p75_ms: float
    p99_ms: float
    max_ms: float
    curve: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        return name_of(self.priority)


def name_of(priority: int) -> str:
    """The name of a priority."""
    return _NAMES.get(priority, f"priority {priority}")


def delivery_times(trace: TraceTables) -> list[DeliveryTime]:
    """The delivery times of each run and priority, the most urgent first."""
    rows = summarise(trace.messages).orderBy("run", sf.desc("priority")).collect()
    return [_from_row(row) for row in rows]


def summarise(messages: DataFrame) -> DataFrame:
    """Count, mean and exact percentiles, in whole microseconds (Spark is three times as fast on those)."""
    took_us = sf.round((sf.col("own_delivery_ns") - sf.col("broadcast_ns")) / 1000).cast("long")
    shares = [sf.lit(share) for share in (*_QUARTILES, *_CURVE)]
    return (
        messages.withColumn("took_us", took_us)
        .where(sf.col("took_us").isNotNull())
        .groupBy("run", "priority")
        .agg(
            sf.count("took_us").alias("count"),
            sf.mean("took_us").alias("mean_us"),
            sf.percentile("took_us", sf.array(shares)).alias("within_us"),
        )
    )


def _from_row(row: Row) -> DeliveryTime:
    within_ms = [microseconds / 1000 for microseconds in row["within_us"]]
    p25, median, p75, p99 = within_ms[: len(_QUARTILES)]
    curve = tuple(zip(_CURVE, within_ms[len(_QUARTILES) :], strict=True))
    return DeliveryTime(
        run=row["run"],
        priority=row["priority"],
        count=row["count"],
        mean_ms=row["mean_us"] / 1000,
        p25_ms=p25,
        median_ms=median,
        p75_ms=p75,
        p99_ms=p99,
        max_ms=curve[-1][1],
        curve=curve,
    )
