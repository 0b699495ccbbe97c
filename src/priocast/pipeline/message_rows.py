"""Rows of chosen messages, looked up again: of those that the message table flags."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.message_table import enters_queue, leaves_queue, queue_rows
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_hash, sender_hash
from priocast.trace.schema import BROADCAST, DELIVERED


def rows_of(batches: DataFrame, few: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """The exploded rows of some messages; batches that cannot contain one of them are not exploded.

    Usually these are a few, but in a damaged trace they may be all: then their keys would be a large table to
    broadcast, and their hashes are eight bytes each. Of the columns of `few`, those to `keep` are added.
    """
    few = few.withColumn("sender_hash", sender_hash())
    numbers = few.groupBy("sender_hash", "level").agg(
        sf.min("number").alias("lowest"), sf.max("number").alias("highest")
    )
    overlaps = (sf.col("first") <= sf.col("highest")) & (sf.col("first") + sf.col("count") > sf.col("lowest"))
    candidates = batches.join(sf.broadcast(numbers), ["sender_hash", "level"]).where(overlaps)
    wanted = few.select(message_hash().alias("message_hash"), *keep)
    return (
        explode_batches(candidates.drop("lowest", "highest"))
        .withColumn("message_hash", message_hash())
        .join(sf.broadcast(wanted), "message_hash", "inner" if keep else "left_semi")
    )


def irregular_deliveries(
    batches: DataFrame, table: DataFrame, participations: DataFrame | None, selective: bool
) -> DataFrame:
    """Every delivery of the irregular messages; `to` is what the sender asked for, if it is recorded.

    `binding` is false if, in a primary group, only members that dropped out of the view delivered the message
    in it, and the message is not safe. Without `participations` all are binding. Only where there are
    `selective` messages, for some of the members, broadcasts are looked at.
    """
    events = (BROADCAST, DELIVERED) if selective else (DELIVERED,)
    irregular = table.where("irregular").withColumnRenamed("safe", "is_safe")
    rows = rows_of(batches.where(sf.col("event").isin(*events)), irregular, keep=("is_safe",))
    of_message = Window.partitionBy("message_hash")
    asked = sf.max(sf.when(sf.col("event") == BROADCAST, sf.col("to"))).over(of_message)
    to = sf.coalesce(asked, sf.max("to").over(of_message)) if selective else sf.col("to")
    found = (
        rows.select(
            *MESSAGE_KEY,
            "message_hash",
            "sender_hash",
            "event",
            "process",
            "process_hash",
            sf.col("member").alias("name"),
            "view",
            "coordinator",
            "view_hash",
            "step",
            (sf.col("position") + sf.col("index")).alias("position"),
            to.alias("to"),
            sf.col("is_safe").alias("safe"),
        )
        .where(sf.col("event") == DELIVERED)
        .drop("event")
    )
    if participations is None:
        return found.withColumn("binding", sf.lit(True))
    binds = participations.select("run", "view_hash", "process", "binds")
    in_view = Window.partitionBy("message_hash", "view_hash")
    return (
        found.join(binds, ["run", "view_hash", "process"], "left")
        .withColumn("binding", sf.col("safe") | sf.max(sf.coalesce("binds", sf.lit(True))).over(in_view))
        .drop("binds")
    )


def deliverer_sets(irregular: DataFrame, participations: DataFrame, words: range) -> DataFrame:
    """One row for each irregular message in each view: the members that delivered it are bits in some words.

    `deliveries` are more than the bits if a member delivered it twice, or somebody else did.
    """
    bits = participations.select("process_hash", "view_hash", "word", "bit")

    def delivered(word: int) -> Column:
        return sf.coalesce(sf.bit_or(sf.when(sf.col("word") == word, sf.col("bit"))), sf.lit(0))

    return (
        irregular.join(sf.broadcast(bits), ["process_hash", "view_hash"], "left")
        .groupBy("message_hash", "sender_hash", "level", "number", "view_hash", "to", "safe")
        .agg(
            sf.min("position").alias("position"),
            sf.count(sf.lit(1)).alias("deliveries"),
            *(delivered(word).alias(f"delivered_{word}") for word in words),
        )
    )


def requeued_messages(batches: DataFrame, views: DataFrame, table: DataFrame) -> DataFrame:
    """The messages that were in several queues: one row for each queue."""
    again = table.where("requeued")
    enters, leaves = enters_queue(), leaves_queue()
    return (
        rows_of(queue_rows(batches, views, enters | leaves), again)
        .groupBy(*MESSAGE_KEY, "sender_hash", sf.col("view_hash").alias("queue_hash"))
        .agg(
            sf.max("priority").alias("priority"),
            sf.min(sf.when(enters, sf.col("sort_key"))).alias("sort_key"),
            sf.min(sf.when(enters, sf.col("step"))).alias("enter_step"),
            sf.min(sf.when(leaves, sf.col("step"))).alias("leave_step"),
            sf.min(sf.when(leaves, sf.col("position") + sf.col("index"))).alias("leave_position"),
        )
        .join(sf.broadcast(again.select(*MESSAGE_KEY, "view_hash", "view_hash_last")), list(MESSAGE_KEY))
    )
