"""Group priority inversions: pairs of messages of which the group delivered the less urgent one first.

That alone is not wrong: the more urgent one may have been broadcast later. A pair counts if the more urgent
message was broadcast before any member delivered the less urgent one, and the group nevertheless delivered it
later. The group delivers a message when the first of its members does. So the measurement means the same for
every protocol, wherever priorities act in it, and for plain groups. No protocol is free of inversions: an
urgent message needs time to reach the others, and a message that is ordered is no longer overtaken.

Times of different members are compared, so only runs whose members share a clock are measured.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.sources import MESSAGE_KEY
from priocast.pipeline.trace_tables import TraceTables


@dataclass(frozen=True)
class Inversions:
    """The inversions of one priority in one run: `pairs` counts the less urgent messages that came before.

    `overtaken` counts the messages with at least one of them, `worst` is the maximum for one message.
    """

    run: str
    priority: int
    messages: int
    overtaken: int
    pairs: int
    worst: int

    @property
    def share(self) -> float:
        return self.overtaken / self.messages


def count_inversions(trace: TraceTables) -> list[Inversions]:
    """The inversions of each run whose members share a clock, by priority."""
    runs = [run.name for run in trace.runs if run.has_one_clock]
    if not runs or not trace.priorities:
        return []
    delivered = trace.messages.where(sf.col("run").isin(runs) & (sf.col("broadcasts") > 0))
    rows = (
        inversions(delivered.where("deliveries > 0"), trace.priorities)
        .groupBy("run", "priority")
        .agg(
            sf.count(sf.lit(1)).alias("messages"),
            sf.count_if(sf.col("before") > 0).alias("overtaken"),
            sf.sum("before").alias("pairs"),
            sf.max("before").alias("worst"),
        )
        .orderBy("run", "priority")
    )
    return [Inversions(**row.asDict()) for row in rows.collect()]


def inversions(delivered: DataFrame, priorities: tuple[int, ...]) -> DataFrame:
    """Each message with how many less urgent ones were delivered `before` it, after it had been broadcast.

    Those are the less urgent ones that were delivered until it was delivered, minus those until it was
    broadcast: two points in one walk through the events of a run, by time. (Both may be at the same time.)
    """
    common = [*MESSAGE_KEY, "priority", "position"]
    happened = delivered.select(
        *common, sf.col("broadcast_ns").alias("time_ns"), sf.lit(False).alias("is_delivery")
    ).unionByName(
        delivered.select(*common, sf.col("delivery_ns").alias("time_ns"), sf.lit(True).alias("is_delivery"))
    )
    so_far = (
        Window.partitionBy("run")
        .orderBy("time_ns", sf.desc("is_delivery"), "position")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )

    def counted(priority: int) -> Column:
        of_priority = sf.col("is_delivery") & (sf.col("priority") == priority)
        return sf.count_if(of_priority).over(so_far).alias(f"delivered_{priority}")

    less_urgent = [
        sf.when(sf.col("priority") > priority, sf.col(f"delivered_{priority}")).otherwise(0)
        for priority in priorities
    ]
    until_delivered = sf.when(sf.col("is_delivery"), sf.col("delivered"))
    until_broadcast = sf.when(~sf.col("is_delivery"), sf.col("delivered"))
    return (
        happened.select("*", *map(counted, priorities))
        .withColumn("delivered", reduce(add, less_urgent))
        .groupBy(*MESSAGE_KEY, "priority")
        .agg(sf.greatest(sf.sum(until_delivered) - sf.sum(until_broadcast), sf.lit(0)).alias("before"))
    )
