"""FIFO order among equals: messages of one sender and level are delivered in the order of their numbers.

Checked once, on the agreed order, not per member: that members follow that order is for Total order.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from priocast.pipeline.checks.violation import violations
from priocast.pipeline.evidence import Evidence, deliveries_of
from priocast.pipeline.sources import MESSAGE_KEY, message_id, process_id


def find(evidence: Evidence) -> DataFrame:
    """Messages that are not the next of their sender and level where they stand in the order."""
    before = (
        Window.partitionBy("run", "sender", "sender_incarnation", "level")
        .orderBy("view", "position", "number")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    found = (
        agreed_order(evidence)
        .withColumn("due", F.coalesce(F.max("number").over(before) + 1, F.lit(0)))
        .where(F.col("number") != F.col("due"))
    )
    skipped = F.format_string("it came before number %d, which was due", "due")
    late = F.format_string("it came after number %d", F.col("due") - 1)
    return violations(
        found,
        view=F.col("view"),
        position=F.col("position"),
        messages=F.array(message_id()),
        members=F.array(process_id("sender", "sender_incarnation")),
        detail=F.when(F.col("number") > F.col("due"), skipped).otherwise(late),
    )


def agreed_order(evidence: Evidence) -> DataFrame:
    """Every delivered message at its place: where all members delivered it, or else most of them."""
    place = [*MESSAGE_KEY, "view", "position"]
    one_place = (F.col("view") == F.col("view_last")) & (F.col("position") == F.col("position_last"))
    delivered = evidence.ledger.where(F.col("deliveries") > 0)
    most = F.max_by(F.struct("view", "position"), F.struct("votes", -F.col("view"), -F.col("position")))
    disputed = (
        deliveries_of(evidence, delivered.where(~one_place))
        .groupBy(place)
        .agg(F.count(F.lit(1)).alias("votes"))
        .groupBy(*MESSAGE_KEY)
        .agg(most.alias("place"))
        .select(*MESSAGE_KEY, "place.view", "place.position")
    )
    return delivered.where(one_place).select(place).unionByName(disputed)
