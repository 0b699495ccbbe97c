"""Total order: members that deliver two messages deliver them in the same order.

Three questions, the first of which is usually the last but one:

1. Did every member of a view deliver every message at one and the same position, with no position left out?
   The ledger knows it without looking at deliveries again. (The other way, a hash of (position, message)
   combined per member and compared, has to explode them all once more.) Only views in doubt are searched.
2. In those: which positions hold more than one message, and which does nobody fill?
3. Did each member deliver in the order that its positions say? The positions are the member's own word: they
   are held against the order of its steps. A member that went back is named at that place.

A member that stopped early has broken no order: that is for Agreement.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import message_id
from priocast.trace.schema import DELIVERED

_VIEWS_SCHEMA = "run string, view long, first_position long"


def find(evidence: Evidence) -> DataFrame:
    """Every place where the order is not one order."""
    parts = [steps_back(evidence.events)]
    doubtful = doubtful_views(evidence).collect()
    if doubtful:
        searched = evidence.events.sparkSession.createDataFrame(doubtful, _VIEWS_SCHEMA)
        deliveries = evidence.deliveries.join(sf.broadcast(searched), ["run", "view"])
        parts += [conflicts(deliveries), unfilled(deliveries)]
    return together(evidence, parts)


def doubtful_views(evidence: Evidence) -> DataFrame:
    """Views with odd messages, or whose messages do not fill the positions from the view's first on."""
    filled = (
        (sf.min("position") == sf.col("first_position"))
        & (sf.max("position") - sf.min("position") + 1 == sf.count(sf.lit(1)))
        & (sf.count_distinct("position") == sf.count(sf.lit(1)))
    )
    whole = evidence.ledger.where("deliveries > 0 and not odd")
    sparse = (
        whole.join(evidence.views, ["run", "view"])
        .groupBy("run", "view", "first_position")
        .agg(filled.alias("filled"))
        .where("not filled")
        .select("run", "view")
    )
    if any(counted.odd for counted in evidence.census):
        odd = evidence.ledger.where("odd")
        both = odd.select("run", sf.explode(sf.array("view", "view_last")).alias("view"))
        sparse = sparse.unionByName(both).distinct()
    return sparse.join(evidence.views, ["run", "view"]).select("run", "view", "first_position")


def conflicts(deliveries: DataFrame) -> DataFrame:
    """Positions at which more than one message was delivered, and who delivered which."""
    who = sf.concat(names("members"), sf.lit(" delivered "), sf.col("message"))
    found = (
        deliveries.withColumn("message", message_id())
        .groupBy("run", "view", "position", "message")
        .agg(sf.array_sort(sf.collect_set("process")).alias("members"))
        .withColumn("who", who)
        .groupBy("run", "view", "position")
        .agg(
            sf.array_sort(sf.collect_list("message")).alias("messages"),
            sf.array_sort(sf.array_distinct(sf.flatten(sf.collect_list("members")))).alias("members"),
            sf.array_sort(sf.collect_list("who")).alias("who"),
        )
        .where(sf.size("messages") > 1)
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("position"),
        messages=sf.col("messages"),
        members=sf.col("members"),
        detail=sf.array_join("who", "; "),
    )


def unfilled(deliveries: DataFrame) -> DataFrame:
    """Positions that the order went past without anybody delivering there."""
    in_order = Window.partitionBy("run", "view").orderBy("position")
    found = (
        deliveries.select("run", "view", "first_position", "position")
        .distinct()
        .withColumn("due", sf.coalesce(sf.lag("position").over(in_order) + 1, sf.col("first_position")))
        .where(sf.col("position") != sf.col("due"))
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("due"),
        messages=sf.array(),
        members=sf.array(),
        detail=sf.format_string(
            "position %d was due and nobody delivered there; the next is %d", "due", "position"
        ),
    )


def steps_back(events: DataFrame) -> DataFrame:
    """Deliveries at a position that the process had already reached or passed, by the order of its steps."""
    before = (
        Window.partitionBy("run", "view", "process")
        .orderBy("step")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    found = (
        events.where(sf.col("event") == DELIVERED)
        .withColumn("reached", sf.max(sf.col("position") + sf.col("count") - 1).over(before))
        .where(sf.col("position") <= sf.col("reached"))
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string("%s delivered it after it had reached position %d", "process", "reached"),
    )
