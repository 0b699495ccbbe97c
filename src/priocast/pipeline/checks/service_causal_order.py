"""Px12: no message is delivered after one that it may have caused.

What a process has delivered, and what it has sent in the same lane, precedes what it sends next. A lane is
in FIFO order, so the past of a message is one number for each lane: the last message of the lane that
precedes it. Directly, these are the greatest numbers that its sender had delivered. A message that its sender
never got may precede it, too, if it precedes one that the sender delivered: the pasts are extended by those
of the messages that were delivered until none changes, which takes one step more than there are such messages
in a row. If every message is for all senders, there are none.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.service_order import orderly
from priocast.pipeline.checks.service_violations import of_deliveries
from priocast.pipeline.service_tables import KEY, ServiceTables

_PLACE = ("run", "process", "order_name")


def causal_order(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Messages that a process delivers after one that they precede."""
    past = _past(tables, is_judged)
    probes = orderly(tables, is_judged).where("unit = 0").withColumn("last", sf.lit(None).cast("long"))
    followed = (
        orderly(tables, is_judged)
        .where("unit = 0")
        .select(*KEY, "process", "step")
        .join(past, list(KEY))
        .select("run", "process", "lane", "step", "last")
    )
    earlier = (
        Window.partitionBy("run", "process", "lane")
        .orderBy("step")
        .rangeBetween(Window.unboundedPreceding, -1)
    )
    is_late = (sf.max("last").over(earlier) >= sf.col("number")) & sf.col("message").isNotNull()
    reason = sf.when(is_late, "after a message that it precedes")
    return of_deliveries(probes.unionByName(followed, allowMissingColumns=True).withColumn("reason", reason))


def _past(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """For each message and each lane: the last message of the lane that precedes it."""
    sent = tables.messages.where(is_judged).select(
        *KEY, "order_name", "lane", "number", "step", sf.col("sender").alias("process")
    )
    delivered = tables.deliveries.where(is_judged & (sf.col("unit") == 0)).select(
        *KEY, *_PLACE[1:], "step", "lane", "number"
    )
    in_lane = Window.partitionBy("run", "lane").orderBy("number")
    own = sent.select(*KEY, "lane", sf.lag("number").over(in_lane).alias("last")).where("last is not null")
    direct = delivered.select(*_PLACE, "step", "lane", sf.col("number").alias("last"))
    past = _greatest(own, _known_when_sent(sent, direct)).localCheckpoint(eager=False)
    if not _has_unaddressed_senders(tables, is_judged):
        return past
    size = _size(past)
    while True:
        learned = (
            delivered.drop("lane", "number").join(past, list(KEY)).select(*_PLACE, "step", "lane", "last")
        )
        known = _known_when_sent(sent, direct.unionByName(learned))
        past = _greatest(own, known).localCheckpoint(eager=False)
        before, size = size, _size(past)
        if before == size:
            return past


def _has_unaddressed_senders(tables: ServiceTables, is_judged: Column) -> bool:
    """Whether a message is not for all processes that send messages of its order."""
    of_order = Window.partitionBy("run", "order_name")
    senders = sf.collect_set("sender").over(of_order)
    sent = tables.messages.where(is_judged).withColumn("senders", senders)
    return not sent.where(sf.size(sf.array_except("senders", "recipients")) > 0).isEmpty()


def _known_when_sent(sent: DataFrame, learned: DataFrame) -> DataFrame:
    """For each message and each lane that its sender knew: the last number that it had learned before."""
    lanes = learned.select(*_PLACE, "lane").distinct()
    asked = sent.drop("lane", "number").join(lanes, list(_PLACE))
    before = Window.partitionBy(*_PLACE, "lane").orderBy("step")
    return (
        asked.unionByName(learned, allowMissingColumns=True)
        .withColumn("last", sf.max("last").over(before))
        .where("message is not null and last is not null")
        .select(*KEY, "lane", "last")
    )


def _greatest(*pasts: DataFrame) -> DataFrame:
    return reduce(DataFrame.unionByName, pasts).groupBy(*KEY, "lane").agg(sf.max("last").alias("last"))


def _size(past: DataFrame) -> tuple[int, int]:
    """It grows with every change."""
    (row,) = past.agg(sf.count("last"), sf.coalesce(sf.sum("last"), sf.lit(0))).collect()
    return row[0], row[1]
