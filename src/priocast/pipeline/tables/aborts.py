"""How many transactions abort, plain and prioritised, and how many had to: the study of aborts.

The rows are transactions: each has the group that it belongs to, whether it committed, how long its answer
took, whether the policy favours it, and how many of its round abort in the best order.
"""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

_CELL = ("workload", "database", "replicas", "rate")
_PLAIN, _PRIORITISED = "plain", "prioritised"


@dataclass(frozen=True)
class ClassTimes:
    """How long the answers of one class of transactions took, in milliseconds."""

    median_ms: float
    p99_ms: float


@dataclass(frozen=True)
class AbortRates:
    """One group: its transactions, the aborts of both variants, and those of the best order.

    `times` are those of the favoured and of the other transactions, by variant.
    """

    workload: str
    database: str
    replicas: int
    rate: int
    transactions: int
    plain: int
    prioritised: int
    best: int
    times: dict[str, dict[str, ClassTimes]]

    @property
    def avoided(self) -> float | None:
        """The share of the avoidable aborts that priorities avoided; None if there were none."""
        avoidable = self.plain - self.best
        return (self.plain - self.prioritised) / avoidable if avoidable > 0 else None


def abort_rates(spark: SparkSession, directory: Path) -> list[AbortRates]:
    """The rates of each group, from the rows of its transactions."""
    rows = spark.read.parquet(str(directory))
    counted = {(*_cell(row), row["variant"]): row for row in count_aborts(rows).collect()}
    timed = {(*_cell(row), row["variant"], row["favoured"]): row for row in answer_times(rows).collect()}
    return [
        AbortRates(
            *cell,
            transactions=counted[*cell, _PLAIN]["transactions"],
            plain=counted[*cell, _PLAIN]["aborts"],
            prioritised=counted[*cell, _PRIORITISED]["aborts"],
            best=counted[*cell, _PLAIN]["best"],
            times={
                variant: {
                    name: ClassTimes(*(each / 1e6 for each in timed[*cell, variant, favoured]["took_ns"]))
                    for name, favoured in (("favoured", True), ("others", False))
                }
                for variant in (_PLAIN, _PRIORITISED)
            },
        )
        for cell in sorted({key[:-1] for key in counted})
    ]


def _cell(row: Row) -> tuple[str, str, int, int]:
    return row["workload"], row["database"], row["replicas"], row["rate"]


def count_aborts(rows: DataFrame) -> DataFrame:
    """The transactions and aborts of each group and variant, and the aborts of the best order."""
    of_round = rows.groupBy(*_CELL, "variant", "round").agg(
        sf.count(sf.lit(1)).alias("transactions"),
        sf.count_if(~sf.col("committed")).alias("aborts"),
        sf.first("best_aborts").alias("best"),
    )
    return of_round.groupBy(*_CELL, "variant").agg(
        *(sf.sum(name).alias(name) for name in ("transactions", "aborts", "best"))
    )


def answer_times(rows: DataFrame) -> DataFrame:
    """The median and the 99th percentile of the answer times, by class."""
    shares = sf.array(sf.lit(0.5), sf.lit(0.99))
    return rows.groupBy(*_CELL, "variant", "favoured").agg(sf.percentile("took_ns", shares).alias("took_ns"))
