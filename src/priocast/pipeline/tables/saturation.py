"""Rate and delivery times of each cell of the saturation study, from a sample of its deliveries."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.core.priority import URGENT

_CELL = ("place", "shape", "members", "payload_bytes", "who", "order", "variant", "load")
_RUN = ("messages", "seed", "machine")
_MS = 1e6


@dataclass(frozen=True)
class SaturationRow:
    """One cell, or one part of it: `who` is *all*, or with a slow member *slow* and *others*.

    `messages` are those of the whole group. `foreign_cores` is how many processors other programs kept busy
    meanwhile; None in the simulator. `urgent_p99_ms` is that of urgent messages; None if the sample has none.
    """

    place: str
    shape: str
    members: int
    payload_bytes: int
    who: str
    order: str
    variant: str
    load: int
    messages: int
    seed: int
    machine: str
    foreign_cores: float | None
    delivered_per_second: float
    deliveries: int
    p50_ms: float
    p99_ms: float
    urgent_p99_ms: float | None

    @property
    def cell(self) -> tuple[str | int, ...]:
        """What was measured, however often."""
        return tuple(getattr(self, name) for name in _CELL)


def saturation_rows(spark: SparkSession, files: Sequence[Path]) -> list[SaturationRow]:
    """The cells in these files, sorted; of one that was measured several times, the longest run."""
    found = measured_cells(spark.read.parquet(*map(str, files))).orderBy(*_CELL, *_RUN).collect()
    rows = [SaturationRow(**row.asDict()) for row in found]
    return list({row.cell: row for row in rows}.values())


def measured_cells(deliveries: DataFrame) -> DataFrame:
    """The rate and the percentiles of each cell, for each way in which it was measured."""
    took_ms = sf.col("took_ns") / _MS
    urgent_ms = sf.when(sf.col("priority") == URGENT, took_ms)
    return deliveries.groupBy(*_CELL, *_RUN).agg(
        sf.first("foreign_cores").alias("foreign_cores"),
        sf.first("delivered_per_second").alias("delivered_per_second"),
        sf.count(sf.lit(1)).alias("deliveries"),
        sf.percentile(took_ms, sf.lit(0.5)).alias("p50_ms"),
        sf.percentile(took_ms, sf.lit(0.99)).alias("p99_ms"),
        sf.percentile(urgent_ms, sf.lit(0.99)).alias("urgent_p99_ms"),
    )
