"""Timestamp order: stamps are unique, the same wherever a message is delivered, and in order.

A stamp is a view, a distribution and a number; only deliveries in views of the adaptive order have one. Four
properties are checked, each by itself:

(a) each process, through all its views, delivers at increasing stamps, by the order of its own steps;
(b) a stamp has one message, whoever delivered it, in whichever component;
(c) in a view, a message has one stamp;
(d) a message has a greater stamp than everything that its process had delivered when it broadcast it.

Stamps of one process compare by the number of the view: its views have different ones. That holds for (d) as
well: a message is delivered in a view that its sender was in.

For (b) and (c), messages and stamps are numbers. Only those of which several belong together are looked up
again. (d) follows from the others for a message that its sender delivered after it broadcast it. So only the
rest is looked at: messages that their sender did not deliver, or not in that order; that have several
broadcasts, places or stamps; and those of senders that step back.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.message_rows import rows_of
from priocast.pipeline.sources import (
    MESSAGE_KEY,
    explode_batches,
    message_hash,
    message_id,
    process_id,
    view_id,
)
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import union, violations
from priocast.trace.schema import BROADCAST, DELIVERED

_STAMP = ("run", "view", "coordinator", "distribution", "stamp_number")
_PLACE = [*MESSAGE_KEY, "view", "coordinator"]
#: Flags of messages that were not broadcast once, and after that delivered by their sender, in one place.
_DOUBTFUL = ("premature", "unheard", "misplaced", "broadcast_again")


def find(trace: TraceTables) -> DataFrame:
    """Every message whose stamp is not unique, not the same everywhere, or not in order."""
    stamped = trace.delivered_batches.where("distribution != ''")
    exploded = explode_batches(stamped).withColumns(
        {"stamp_number": sf.col("stamp_number") + sf.col("index"), "message_hash": message_hash()}
    )
    hashed = exploded.withColumns(
        {"stamp": sf.xxhash64(*_STAMP), "message_in_view": sf.xxhash64("message_hash", "view_hash")}
    )
    ambiguous = ambiguous_hashes(hashed)
    is_ambiguous = not ambiguous.isEmpty()
    steppers = [row["process_hash"] for row in not_above(stamped).select("process_hash").distinct().collect()]
    tables = []
    if steppers:
        tables.append(steps_back(stamped.where(sf.col("process_hash").isin(steppers))))
    if is_ambiguous:
        tables += [shared_stamps(hashed, ambiguous), several_stamps(hashed, ambiguous)]
    if is_ambiguous or steppers or any(map(trace.any, _DOUBTFUL)):
        is_doubtful = sf.expr(" or ".join(_DOUBTFUL)) | sf.col("sender_hash").isin(steppers)
        few = trace.messages.where(is_doubtful).select(*MESSAGE_KEY)
        if is_ambiguous:
            few = few.unionByName(of_ambiguous(hashed, "message_in_view", ambiguous).select(*MESSAGE_KEY))
        tables.append(acausal(trace, stamped, few.distinct()))
    return union(trace, tables)


def steps_back(stamped: DataFrame) -> DataFrame:
    """Deliveries of a process whose stamp is not above that of its last delivery before."""
    found = not_above(stamped).withColumn("number", sf.col("first")).withColumn("message", message_id())
    summary = sf.concat(
        sf.col("process"), sf.lit(" delivered "), sf.col("message"), sf.lit(" with the stamp ")
    )
    return _reported(
        found,
        sf.concat(summary, _shown(), sf.lit(" after a greater one")),
        sf.array("process"),
        sf.array("message"),
    )


def not_above(stamped: DataFrame) -> DataFrame:
    """Parts of batches whose first stamp is not above the last one of the part before."""
    in_order = Window.partitionBy("process_hash").orderBy("step")
    before = {
        "view_before": sf.lag("view").over(in_order),
        "distribution_before": sf.lag("distribution").over(in_order),
        "number_before": sf.lag(sf.col("stamp_number") + sf.col("count") - 1).over(in_order),
    }
    same_kind = (sf.col("view") == sf.col("view_before")) & (
        sf.col("distribution") == sf.col("distribution_before")
    )
    same = sf.col("stamp_number") <= sf.col("number_before")
    other = _comparable() <= _comparable("view_before", "distribution_before", sf.col("number_before"))
    return stamped.withColumns(before).where(sf.when(same_kind, same).otherwise(other)).drop(*before)


def ambiguous_hashes(hashed: DataFrame) -> DataFrame:
    """The stamps of several messages, and the messages that have several stamps in one view."""
    message, stamp = sf.col("message_in_view"), sf.col("stamp")
    both_ways = [
        sf.struct(one.alias("ambiguous"), other.alias("other"))
        for one, other in ((message, stamp), (stamp, message))
    ]
    return (
        hashed.select(message, stamp)
        .distinct()
        .select(sf.inline(sf.array(*both_ways)))
        .groupBy("ambiguous")
        .agg(sf.min("other").alias("lowest"), sf.max("other").alias("highest"))
        .where("lowest != highest")
        .select("ambiguous")
    )


def of_ambiguous(hashed: DataFrame, column: str, ambiguous: DataFrame) -> DataFrame:
    """The deliveries that have an ambiguous value in a column, with the name of the message."""
    wanted = ambiguous.withColumnRenamed("ambiguous", column)
    found = hashed.join(sf.broadcast(wanted), column, "left_semi")
    return found.withColumn("message", message_id())


def shared_stamps(hashed: DataFrame, ambiguous: DataFrame) -> DataFrame:
    """Stamps that several messages have."""
    found = (
        of_ambiguous(hashed, "stamp", ambiguous)
        .groupBy(*_STAMP)
        .agg(
            sf.array_sort(sf.collect_set("message")).alias("messages"),
            sf.array_sort(sf.collect_set("process")).alias("members"),
        )
        .where(sf.size("messages") > 1)
    )
    summary = sf.concat(sf.array_join("messages", ", "), sf.lit(" have the stamp "), _shown())
    return _reported(found, summary, sf.col("members"), sf.col("messages"))


def several_stamps(hashed: DataFrame, ambiguous: DataFrame) -> DataFrame:
    """Messages that have several stamps in one view."""
    found = (
        of_ambiguous(hashed, "message_in_view", ambiguous)
        .withColumn("shown", _shown())
        .groupBy("run", "view", "coordinator", "message")
        .agg(
            sf.array_sort(sf.collect_set("shown")).alias("stamps"),
            sf.array_sort(sf.collect_set("process")).alias("members"),
        )
        .where(sf.size("stamps") > 1)
    )
    summary = sf.concat(sf.col("message"), sf.lit(" has the stamps "), sf.array_join("stamps", ", "))
    return _reported(found, summary, sf.col("members"), sf.array("message"))


def acausal(trace: TraceTables, stamped: DataFrame, few: DataFrame) -> DataFrame:
    """Those whose stamp is not above what their process had delivered when it broadcast them."""
    so_far = Window.partitionBy("process_hash").orderBy("step").rowsBetween(Window.unboundedPreceding, 0)
    last = _comparable(number=sf.col("stamp_number") + sf.col("count") - 1)
    delivered = sf.when((sf.col("event") == DELIVERED) & (sf.col("distribution") != ""), last)
    rows = trace.batches.where(sf.col("event").isin(BROADCAST, DELIVERED))
    known = rows.withColumn("before", sf.last(delivered, ignorenulls=True).over(so_far))
    broadcast = rows_of(known.where((sf.col("event") == BROADCAST) & sf.col("before").isNotNull()), few)
    found = (
        rows_of(stamped, few)
        .withColumn("stamp_number", sf.col("stamp_number") + sf.col("index"))
        .join(broadcast.select("message_hash", "before"), "message_hash")
        .where(_comparable() <= sf.col("before"))
        .dropDuplicates(_PLACE)
        .withColumn("message", message_id())
    )
    sender = process_id("sender", "sender_incarnation")
    said = sf.lit(" broadcast it after it had delivered a greater one")
    summary = sf.concat(sf.col("message"), sf.lit(" has the stamp "), _shown(), sf.lit("; "), sender, said)
    return _reported(found, summary, sf.array(sender), sf.array("message"))


def _comparable(
    view: str = "view", distribution: str = "distribution", number: Column | None = None
) -> Column:
    """A stamp of one process, as a value that compares like it."""
    parts = sf.split(distribution, r"\.")
    return sf.struct(
        sf.col(view).alias("of_view"),
        parts[0].try_cast("long").alias("of_distribution"),
        parts[1].try_cast("long").alias("of_rank"),
        (sf.col("stamp_number") if number is None else number).alias("of_number"),
    )


def _shown() -> Column:
    """A stamp as `Stamp` is written."""
    return sf.concat(view_id(), sf.lit("/"), sf.col("distribution"), sf.lit("/"), sf.col("stamp_number"))


def _reported(found: DataFrame, summary: Column, members: Column, messages: Column) -> DataFrame:
    position = sf.lit(None)
    return violations(found, position=position, messages=messages, members=members, summary=summary)
