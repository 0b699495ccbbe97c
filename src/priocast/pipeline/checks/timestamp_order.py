"""Timestamp order: stamps are unique, the same wherever a message is delivered, and in order.

A stamp is a view, a distribution and a number; only deliveries in views of the adaptive order have one. Four
properties are checked, each by itself:

(a) each process, through all its views, delivers at increasing stamps, by the order of its own steps;
(b) a stamp has one message, whoever delivered it, in whichever component;
(c) in a view, a message has one stamp;
(d) a message has a greater stamp than everything that its process had delivered when it broadcast it.

Stamps of one process compare by the number of the view: its views have different ones. That holds for (d) as
well: a message is delivered in a view that its sender was in.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_id, process_id, view_id
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import union, violations
from priocast.trace.schema import BROADCAST, DELIVERED

_STAMP = ("run", "view", "coordinator", "distribution", "stamp_number")


def find(trace: TraceTables) -> DataFrame:
    """Every message whose stamp is not unique, not the same everywhere, or not in order."""
    stamped = trace.delivered_batches.where("distribution != ''")
    exploded = explode_batches(stamped).withColumns(
        {"stamp_number": sf.col("stamp_number") + sf.col("index"), "message": message_id()}
    )
    return union(
        trace,
        [steps_back(stamped), shared_stamps(exploded), several_stamps(exploded), acausal(trace, exploded)],
    )


def steps_back(stamped: DataFrame) -> DataFrame:
    """Deliveries of a process whose stamp is not above that of its last delivery before."""
    in_order = Window.partitionBy("run", "process").orderBy("step")
    last = _comparable(sf.col("stamp_number") + sf.col("count") - 1)
    found = (
        stamped.withColumns(
            {"stamp": _comparable(sf.col("stamp_number")), "before": sf.lag(last).over(in_order)}
        )
        .where("stamp <= before")
        .withColumn("number", sf.col("first"))
        .withColumn("message", message_id())
    )
    summary = sf.concat(
        sf.col("process"), sf.lit(" delivered "), sf.col("message"), sf.lit(" with the stamp ")
    )
    return _reported(
        found,
        sf.concat(summary, _shown(), sf.lit(" after a greater one")),
        sf.array("process"),
        sf.array("message"),
    )


def shared_stamps(exploded: DataFrame) -> DataFrame:
    """Stamps that several messages have."""
    found = (
        exploded.groupBy(*_STAMP)
        .agg(
            sf.array_sort(sf.collect_set("message")).alias("messages"),
            sf.array_sort(sf.collect_set("process")).alias("members"),
        )
        .where(sf.size("messages") > 1)
    )
    summary = sf.concat(sf.array_join("messages", ", "), sf.lit(" have the stamp "), _shown())
    return _reported(found, summary, sf.col("members"), sf.col("messages"))


def several_stamps(exploded: DataFrame) -> DataFrame:
    """Messages that have several stamps in one view."""
    found = (
        exploded.withColumn("shown", _shown())
        .groupBy("run", "view", "coordinator", "message")
        .agg(
            sf.array_sort(sf.collect_set("shown")).alias("stamps"),
            sf.array_sort(sf.collect_set("process")).alias("members"),
        )
        .where(sf.size("stamps") > 1)
    )
    summary = sf.concat(sf.col("message"), sf.lit(" has the stamps "), sf.array_join("stamps", ", "))
    return _reported(found, summary, sf.col("members"), sf.array("message"))


def acausal(trace: TraceTables, exploded: DataFrame) -> DataFrame:
    """Messages whose stamp is not above what their process had delivered when it broadcast them."""
    so_far = Window.partitionBy("run", "process").orderBy("step").rowsBetween(Window.unboundedPreceding, 0)
    last = _comparable(sf.col("stamp_number") + sf.col("count") - 1)
    delivered = sf.when((sf.col("event") == DELIVERED) & (sf.col("distribution") != ""), last)
    rows = trace.batches.where(sf.col("event").isin(BROADCAST, DELIVERED))
    broadcast = (
        rows.withColumn("before", sf.last(delivered, ignorenulls=True).over(so_far))
        .where((sf.col("event") == BROADCAST) & sf.col("before").isNotNull())
        .transform(explode_batches)
        .select(*MESSAGE_KEY, "before")
    )
    found = (
        exploded.withColumn("stamp", _comparable(sf.col("stamp_number")))
        .join(broadcast, list(MESSAGE_KEY))
        .where("stamp <= before")
        .dropDuplicates([*MESSAGE_KEY, "view", "coordinator"])
    )
    sender = process_id("sender", "sender_incarnation")
    said = sf.lit(" broadcast it after it had delivered a greater one")
    summary = sf.concat(sf.col("message"), sf.lit(" has the stamp "), _shown(), sf.lit("; "), sender, said)
    return _reported(found, summary, sf.array(sender), sf.array("message"))


def _comparable(number: Column) -> Column:
    """A stamp of one process, as a value that compares like it."""
    parts = sf.split("distribution", r"\.")
    return sf.struct(
        sf.col("view").alias("of_view"),
        parts[0].try_cast("long").alias("of_distribution"),
        parts[1].try_cast("long").alias("of_rank"),
        number.alias("of_number"),
    )


def _shown() -> Column:
    """A stamp as `Stamp` is written."""
    return sf.concat(view_id(), sf.lit("/"), sf.col("distribution"), sf.lit("/"), sf.col("stamp_number"))


def _reported(found: DataFrame, summary: Column, members: Column, messages: Column) -> DataFrame:
    position = sf.lit(None)
    return violations(found, position=position, messages=messages, members=members, summary=summary)
