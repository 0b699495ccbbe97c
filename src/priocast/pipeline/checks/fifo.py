"""FIFO among equals: messages of one sender and level are delivered in the order of their numbers.

Checked once, on the agreed order, not per member: that members follow that order is for Total order.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import violations
from priocast.pipeline.evidence import Evidence
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
        .withColumn("due", sf.coalesce(sf.max("number").over(before) + 1, sf.lit(0)))
        .where(sf.col("number") != sf.col("due"))
    )
    skipped = sf.format_string("it came before number %d, which was due", "due")
    late = sf.format_string("it came after number %d", sf.col("due") - 1)
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array(process_id("sender", "sender_incarnation")),
        detail=sf.when(sf.col("number") > sf.col("due"), skipped).otherwise(late),
    )


def agreed_order(evidence: Evidence) -> DataFrame:
    """Every delivered message at its place: where all members delivered it, or else most of them."""
    place = [*MESSAGE_KEY, "view", "position"]
    delivered = evidence.ledger.where("deliveries > 0")
    if not any(counted.odd for counted in evidence.census):
        return delivered.select(place)
    most = sf.max_by(sf.struct("view", "position"), sf.struct("votes", -sf.col("view"), -sf.col("position")))
    voted = (
        evidence.deliveries_of(delivered.where("odd"))
        .groupBy(place)
        .agg(sf.count(sf.lit(1)).alias("votes"))
        .groupBy(*MESSAGE_KEY)
        .agg(most.alias("place"))
        .select(*MESSAGE_KEY, "place.view", "place.position")
    )
    return delivered.where("not odd").select(place).unionByName(voted)
