"""Who delivered the messages that lack a delivery, found once for each set of processes.

In a damaged trace all messages may lack one, but few sets of processes delivered them. The messages of a
*group* have the same deliverers, in one view, and the same processes must deliver them: what holds of one of
its messages holds of all. The message table has the number of deliveries and the combined hash of their
processes; equal ones stand for the same set unless a process delivered a message twice. So one message of
each group is looked up, and all of them only where that one shows a delivery too many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.message_rows import deliverer_sets, irregular_deliveries
from priocast.pipeline.message_table import MessageCounts
from priocast.pipeline.sources import MESSAGE_KEY, message_hash

_GROUPS_MAX = 10_000


@dataclass(frozen=True)
class DelivererGroups:
    """`sets` has the deliverers of one message of each group, with the `group_hash`.

    `unclear` has the hashes of the groups whose messages must be looked up one by one; they are not in
    `sets`. It is None if there are none.
    """

    sets: DataFrame
    unclear: DataFrame | None

    def one_by_one(self, table: DataFrame) -> DataFrame:
        """The irregular messages of the message table that no group stands for."""
        irregular = table.where("irregular")
        if self.unclear is None:
            return irregular.where("group_hash is null")
        unclear = sf.broadcast(self.unclear.withColumn("is_unclear", sf.lit(True)))
        return (
            irregular.join(unclear, "group_hash", "left")
            .where("group_hash is null or is_unclear")
            .drop("is_unclear")
        )


def group_by_deliverers(
    batches: DataFrame, table: DataFrame, participations: DataFrame, words: range
) -> DelivererGroups | None:
    """The groups of the irregular messages; None if there are so many that they save nothing.

    They go through the driver, so that the plans of the checks do not contain how they were found.
    """
    spark = table.sparkSession
    grouped = table.where("group_hash is not null").withColumn("message_hash", message_hash())
    of_group = grouped.groupBy("group_hash").agg(sf.min("message_hash").alias("message_hash"))
    chosen = sf.broadcast(of_group.limit(_GROUPS_MAX + 1))
    first = grouped.join(chosen, ["group_hash", "message_hash"]).select(
        *MESSAGE_KEY, "message_hash", "group_hash", "safe", "irregular"
    )
    rows = first.toArrow()
    if rows.num_rows > _GROUPS_MAX:
        return None
    messages = spark.createDataFrame(rows)
    deliveries = irregular_deliveries(batches, messages, None, selective=False)
    found = deliverer_sets(deliveries, participations, words)
    hashes = sf.broadcast(messages.select("message_hash", "group_hash"))
    sets = spark.createDataFrame(found.join(hashes, "message_hash").toArrow())
    members = reduce(add, (sf.bit_count(f"delivered_{word}") for word in words))
    repeated = sf.col("deliveries") > members
    unclear = sets.where(repeated).select("group_hash")
    return DelivererGroups(sets.where(~repeated), None if unclear.isEmpty() else unclear)


def judged_one_by_one(
    table: DataFrame, counts: Sequence[MessageCounts], groups: DelivererGroups | None
) -> DataFrame | None:
    """The messages of which the irregular ones are judged one by one, if there are any."""
    if groups is None:
        return table if any(count.irregular for count in counts) else None
    if groups.unclear is None and not any(count.irregular > count.grouped for count in counts):
        return None
    return groups.one_by_one(table)
