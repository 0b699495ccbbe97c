"""FIFO among equals: messages of one sender and level are delivered in the order of their numbers.

Checked once, on the agreed order, not per process: that processes follow that order is for Total order, and
that they leave out nothing that they owe for Agreement. A sender is in one view at a time, and its views go
forward, so its messages have one order by view and position even where views exist side by side.

No number is left out, except

- a message that was not for all, or on behalf of a client (who asked twice), and that nobody delivered;
- one that binds nobody (see Total order): only members that fell out of the view delivered it;
- in a partitionable group, where the sender goes from one view to another: it cannot know what the other side
  of a cut has ordered, and must not submit that again.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import MESSAGE_KEY, STREAM_KEY, message_id, process_id

_BEGINNINGS_SCHEMA = "run string, sender string, sender_incarnation long, view long, coordinator string"


def find(evidence: Evidence) -> DataFrame:
    """Messages that are not the next of their sender and level where they stand in the order."""
    before = (
        Window.partitionBy(*STREAM_KEY)
        .orderBy("view", "position", "number")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    found = (
        agreed_order(evidence)
        .withColumn("due", sf.coalesce(sf.max("number").over(before) + 1, sf.lit(0)))
        .withColumn("print_before", sf.last("view_print").over(before))
        .where(sf.col("number") != sf.col("due"))
    )
    if evidence.any("withheld") or evidence.any("unbound"):
        found = not_excused(found, evidence)
    if not all(run.primary for run in evidence.runs):
        found = not_between_views(found, evidence)
    named = evidence.views.select("run", "view_print", "coordinator")
    skipped = sf.format_string("it came before number %d, which was due", "due")
    late = sf.format_string("it came after number %d", sf.col("due") - 1)
    return violations(
        found.join(named, ["run", "view_print"], "left"),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array(process_id("sender", "sender_incarnation")),
        detail=sf.when(sf.col("number") > sf.col("due"), skipped).otherwise(late),
    )


def agreed_order(evidence: Evidence) -> DataFrame:
    """Every delivered message at its place: where all members delivered it, or else most of them."""
    place = [*MESSAGE_KEY, "view", "view_print", "position"]
    whole = evidence.ledger.where("deliveries > 0 and not odd and not unbound").select(place)
    if evidence.odd is None:
        return whole
    first_of_most = sf.struct("votes", -sf.col("view"), -sf.col("position"), "coordinator")
    voted = (
        evidence.odd.where("binding")
        .groupBy(*place, "coordinator")
        .agg(sf.count(sf.lit(1)).alias("votes"))
        .groupBy(*MESSAGE_KEY)
        .agg(sf.max_by(sf.struct("view", "view_print", "position"), first_of_most).alias("place"))
        .select(*MESSAGE_KEY, "place.*")
    )
    return whole.unionByName(voted)


def not_excused(found: DataFrame, evidence: Evidence) -> DataFrame:
    """Those that are out of turn even if the messages are counted that need not be in the order."""
    excused = evidence.without_place().withColumnRenamed("number", "excused").drop("special")
    skipped = (sf.col("excused") >= sf.col("due")) & (sf.col("excused") < sf.col("number"))
    return (
        found.join(excused, list(STREAM_KEY), "left")
        .groupBy(found.columns)
        .agg(sf.count_if(skipped).alias("explained"))
        .where(sf.col("due") + sf.col("explained") != sf.col("number"))
        .drop("explained")
    )


def not_between_views(found: DataFrame, evidence: Evidence) -> DataFrame:
    """Those that are out of turn even if a sender may lose messages between two views of a divided group."""
    beginnings = []
    for run in evidence.runs:
        if not run.primary:
            for process, life in evidence.chronicles[run.name].lives.items():
                name, _, incarnation = process.rpartition("#")
                if life.told:
                    beginnings.append((run.name, name, int(incarnation), *life.told[0].view))
    first_views = evidence.spark.createDataFrame(beginnings, _BEGINNINGS_SCHEMA).select(
        "run", "sender", "sender_incarnation", sf.xxhash64("view", "coordinator").alias("first_print")
    )
    changed = sf.coalesce("print_before", "first_print") != sf.col("view_print")
    ahead = sf.col("number") > sf.col("due")
    return (
        found.join(sf.broadcast(first_views), ["run", "sender", "sender_incarnation"], "left")
        .where(~(sf.coalesce(sf.col("first_print").isNotNull() & changed, sf.lit(False)) & ahead))
        .drop("first_print")
    )
