"""Px11 to Px13: in which order the messages of a quality are delivered."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.service_violations import of_deliveries
from priocast.pipeline.service_tables import ServiceTables


def total_order(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px11: units that two processes deliver in another order.

    Each pair of processes is compared along the order of one of them: if no step of the other one is before
    that of its predecessor, the orders are the same.
    """
    unit = ["run", "order_name", "message", "unit"]
    mine = orderly(tables, is_judged).select(*unit, "process", "step", "view", "coordinator")
    theirs = mine.select(*unit, sf.col("process").alias("other"), sf.col("step").alias("other_step"))
    in_my_order = Window.partitionBy("run", "order_name", "process", "other").orderBy("step")
    differs = sf.lag("other_step").over(in_my_order) > sf.col("other_step")
    both = mine.join(theirs, unit).where("process < other")
    reason = sf.when(differs, sf.concat(sf.lit("in another order than "), "other"))
    return of_deliveries(both.withColumn("reason", reason))


def fifo_order(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px13: messages that a process delivers after a later one of the same sender."""
    first_units = orderly(tables, is_judged).where("unit = 0")
    before = (
        Window.partitionBy("run", "process", "lane")
        .orderBy("step")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    is_late = sf.max("number").over(before) > sf.col("number")
    reason = sf.when(is_late, "after a later one of its sender")
    return of_deliveries(first_units.withColumn("reason", reason))


def orderly(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """The deliveries of processes that did not fail."""
    return tables.deliveries.where(is_judged & sf.array_contains("orderly", sf.col("process")))
