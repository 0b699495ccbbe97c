"""The message table: one row for each message, with flags for the messages that need a closer look.

It is built in one pass over the exploded rows and answers most questions at once, because a violation nearly
always shows in the counts of a message.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.core.priority import HIGHEST
from priocast.pipeline.sources import explode_batches
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT

#: A message as numbers: the hash of its sender and its run, its level, its number.
_NUMBERED = ("sender_hash", "level", "number")
_COUNTED = ("deliveries", "broadcasts", "queue_entries")
_ONLY_FOR_FLAGS = (
    *("processes_hash", "to_hash", "to_hash_last", "position_last", "queue_hash_last", "for_client"),
    *("broadcast_step", "own_delivery_step"),
)
_FLAGS = (
    "irregular",
    "misplaced",
    "spurious",
    "broadcast_again",
    "requeued",
    "unqueued",
    "withheld",
    "nonbinding",
    "premature",
    "unheard",
)


@dataclass(frozen=True)
class MessageCounts:
    """How many messages of one priority there are in one run.

    The last twelve should be zero or small: messages that were broadcast and delivered nowhere
    (`undelivered`); not delivered exactly once by each process that must, at one position (`irregular`); of
    these, judged by who delivered them, not one by one (`grouped`), or delivered at several positions, or in
    several views (`misplaced`);
    delivered but never broadcast (`spurious`); broadcast several times (`broadcast_again`); in the ordering
    queues of several views (`requeued`); ordered without having been in the queue (`unqueued`); not
    delivered, possibly because they were not for all or repeat a client's request (`withheld`); delivered
    only by members that dropped out of the view, so that they bind no other member (`nonbinding`); delivered
    by their sender before it broadcast them (`premature`); delivered, but not by their sender (`unheard`).
    """

    run: str
    priority: int
    broadcasts: int
    messages: int
    deliveries: int
    safe: int
    queue_entries: int
    undelivered: int
    irregular: int
    grouped: int
    misplaced: int
    spurious: int
    broadcast_again: int
    requeued: int
    unqueued: int
    withheld: int
    nonbinding: int
    premature: int
    unheard: int


def count_messages(messages: DataFrame) -> DataFrame:
    """How many messages of each priority there are in each run, and how many have each flag."""
    delivered = sf.col("deliveries") > 0
    return messages.groupBy("run", "priority").agg(
        sf.count_if(sf.col("broadcasts") > 0).alias("broadcasts"),
        sf.count_if(delivered).alias("messages"),
        sf.sum("deliveries").alias("deliveries"),
        sf.count_if(delivered & sf.col("safe")).alias("safe"),
        sf.sum("queue_entries").alias("queue_entries"),
        sf.count_if((sf.col("broadcasts") > 0) & ~delivered).alias("undelivered"),
        sf.count("group_hash").alias("grouped"),
        *(sf.count_if(flag).alias(flag) for flag in _FLAGS),
    )


def is_reference() -> Column:
    """Whether the packet of a row only references its messages."""
    return sf.col("event").isin(SENT, RECEIVED) & (sf.col("bytes") == 0)


def enters_queue() -> Column:
    """Whether a message enters the ordering queue of its view in this row."""
    received = (sf.col("event") == RECEIVED) & (sf.col("position") < 0) & ~is_reference()
    return sf.col("orders_by_priority") & (sf.col("process_hash") == sf.col("orderer_hash")) & received


def leaves_queue() -> Column:
    """Whether a message leaves that queue in this row."""
    ordered = (sf.col("event") == SENT) & (sf.col("position") >= 0)
    return sf.col("orders_by_priority") & (sf.col("process_hash") == sf.col("orderer_hash")) & ordered


def is_offered() -> Column:
    """Whether a message enters its sender's own queue in this row."""
    return sf.col("sends_by_priority") & is_own() & (sf.col("event") == BROADCAST)


def is_taken() -> Column:
    """Whether a message may leave its sender's own queue in this row: it does in the first such row."""
    return sf.col("sends_by_priority") & is_own() & (sf.col("event") == SENT) & ~is_reference()


def is_own() -> Column:
    """Whether the process of a row is the sender of its messages."""
    return sf.col("process_hash") == sf.col("sender_hash")


def queue_rows(batches: DataFrame, views: DataFrame, wanted: Column) -> DataFrame:
    """The wanted rows, with the orderer of their view and the sort key that they have in a queue."""
    known = views.select(
        "run",
        "view_hash",
        "orderer_hash",
        "orders_by_priority",
        "sends_by_priority",
        "ageing_ns",
        "release_ns",
    )
    without_position = (sf.col("event") == RECEIVED) & (sf.col("position") < 0)
    candidates = sf.col("event").isin(BROADCAST, SENT) | without_position
    return (
        batches.where(candidates)
        .join(sf.broadcast(known), ["run", "view_hash"], "left")
        .where(wanted)
        .withColumn("sort_key", _sort_key())
        .drop("ageing_ns", "release_ns")
    )


def message_table(batches: DataFrame, views: DataFrame, senders: DataFrame) -> DataFrame:
    """One row for each message: its broadcast, who delivered it and where, and its path through the queues.

    Deliveries are most of the rows, and few of the columns are about them: they are aggregated on their own.
    A message is three numbers until then; `senders` has the names for them.
    """
    delivered, sent = delivered_messages(batches), sent_messages(batches, views)
    both = delivered.join(sent.hint("shuffle_hash"), list(_NUMBERED), "full_outer")
    return (
        both.withColumns(
            {
                "priority": sf.greatest("priority", "sent_priority"),
                "safe": sf.greatest("safe", "sent_safe"),
                "in_line": sf.greatest("in_line", "sent_in_line"),
                "to_hash": sf.least("to_hash", "sent_to_hash"),
                "to_hash_last": sf.greatest("to_hash_last", "sent_to_hash_last"),
                "for_client": sf.coalesce("for_client", sf.lit(False)),
                **{name: sf.coalesce(name, sf.lit(0)) for name in _COUNTED},
            }
        )
        .drop("sent_priority", "sent_safe", "sent_in_line", "sent_to_hash", "sent_to_hash_last")
        .join(sf.broadcast(senders), "sender_hash")
    )


def delivered_messages(batches: DataFrame) -> DataFrame:
    """Who delivered each message, and where: minima, maxima and counts of its deliveries."""
    position = sf.col("position") + sf.col("index")
    return (
        explode_batches(batches.where(sf.col("event") == DELIVERED))
        .groupBy(*_NUMBERED)
        .agg(
            *_what_it_is(sf.xxhash64("to")),
            sf.count(sf.lit(1)).alias("deliveries"),
            sf.bit_xor("process_hash").alias("processes_hash"),
            sf.min("view_hash").alias("view_hash"),
            sf.max("view_hash").alias("view_hash_last"),
            sf.min(position).alias("position"),
            sf.max(position).alias("position_last"),
            sf.min("time_ns").alias("delivery_ns"),
            sf.min(sf.when(is_own(), sf.col("time_ns"))).alias("own_delivery_ns"),
            sf.min(sf.when(is_own(), sf.col("step"))).alias("own_delivery_step"),
        )
    )


def sent_messages(batches: DataFrame, views: DataFrame) -> DataFrame:
    """The broadcast of each message and its path through the queues.

    The *ordering queue* exists where one member orders alone in a view: a message enters it when that member
    receives it without a position, and leaves it when the member sends it with one. Before that, the message
    is in its sender's own queue: it is *offered* there by its broadcast, and *taken* when its sender first
    sends a packet that carries it. Only queues that are ordered by a sort key are considered. The values of a
    row are put into separate columns before it is exploded (null where they do not apply), so that a message
    costs only minima.
    """
    is_broadcast = sf.col("event") == BROADCAST
    enters, leaves, offered, taken = enters_queue(), leaves_queue(), is_offered(), is_taken()
    rows = queue_rows(batches, views, is_broadcast | enters | leaves | taken).withColumns(
        {
            "broadcast_ns": sf.when(is_broadcast, sf.col("time_ns")),
            "broadcast_step": sf.when(is_broadcast & is_own(), sf.col("step")),
            "to_hash": sf.when(~is_reference(), sf.xxhash64("to")),
            "for_client": is_broadcast & (sf.col("client") != ""),
            "queue_hash": sf.when(enters | leaves, sf.col("view_hash")),
            "offer_hash": sf.when(offered, sf.col("view_hash")),
            "take_hash": sf.when(taken, sf.col("view_hash")),
            "enter_step": sf.when(enters, sf.col("step")),
            "enter_key": sf.when(enters, sf.col("sort_key")),
            "leave_step": sf.when(leaves, sf.col("step")),
            "left_at": sf.when(leaves, sf.col("position")),
            "offer_step": sf.when(offered, sf.col("step")),
            "offer_key": sf.when(offered, sf.col("sort_key")),
            "take_step": sf.when(taken, sf.col("step")),
        }
    )
    return (
        explode_batches(rows)
        .groupBy(*_NUMBERED)
        .agg(
            *_what_it_is(sf.col("to_hash"), "sent_"),
            sf.max("for_client").alias("for_client"),
            sf.count("broadcast_ns").alias("broadcasts"),
            sf.min("broadcast_ns").alias("broadcast_ns"),
            sf.min("broadcast_step").alias("broadcast_step"),
            *_path_through_queues(),
        )
    )


def _what_it_is(to_hash: Column, prefix: str = "") -> tuple[Column, ...]:
    """What should be the same in all rows of a message."""
    return (
        sf.max("priority").alias(f"{prefix}priority"),
        sf.max("safe").alias(f"{prefix}safe"),
        sf.max(sf.length("priorities") > 0).alias(f"{prefix}in_line"),
        sf.min(to_hash).alias(f"{prefix}to_hash"),
        sf.max(to_hash).alias(f"{prefix}to_hash_last"),
    )


def _path_through_queues() -> tuple[Column, ...]:
    return (
        sf.min("queue_hash").alias("queue_hash"),
        sf.max("queue_hash").alias("queue_hash_last"),
        (sf.count("enter_step") + sf.count("offer_step")).alias("queue_entries"),
        sf.min("enter_step").alias("enter_step"),
        sf.min("enter_key").alias("sort_key"),
        sf.min("leave_step").alias("leave_step"),
        sf.min(sf.col("left_at") + sf.col("index")).alias("leave_position"),
        sf.min("offer_hash").alias("offer_hash"),
        sf.min("offer_step").alias("offer_step"),
        sf.min("offer_key").alias("offer_key"),
        sf.min("take_step").alias("take_step"),
        sf.min_by("take_hash", "take_step").alias("take_hash"),
        sf.min_by("index", "take_step").alias("take_index"),
    )


def _sort_key() -> Column:
    """The sort key that the starvation policy of the view assigns, computed as in `core/starvation.py`."""
    urgency = sf.when(sf.length("priorities") > 0, sf.lit(HIGHEST)).otherwise(sf.col("level")).cast("long")
    period = sf.expr("(time_ns - pmod(time_ns, release_ns)) div release_ns")
    return (
        sf.when(sf.col("ageing_ns").isNotNull(), sf.col("time_ns") - urgency * sf.col("ageing_ns"))
        .when(sf.col("release_ns").isNotNull(), period * (HIGHEST + 1) - urgency)
        .otherwise(-urgency)
    )


def is_queue_of_delivery() -> Column:
    """Whether the queue belongs to the view in which the message was delivered, if it was."""
    queue = sf.col("queue_hash")
    return sf.coalesce((queue == sf.col("view_hash")) | (queue == sf.col("view_hash_last")), sf.lit(True))


def flag_messages(messages: DataFrame, obligations: DataFrame, grouped: Column) -> DataFrame:
    """Add the flags of each message; if it was delivered as it must be, also the number of its view.

    Whether a message was delivered exactly once by each process that must shows in the number of deliveries
    and in the combined hash of the processes. A safe message that was delivered by only some of the members
    that continued from the view is irregular, even if no others must deliver it.

    An irregular message that may be `grouped`, has one place and is for all has a `group_hash`, the same
    for all messages that the same processes delivered and must deliver.
    """
    one_place = (sf.col("view_hash") == sf.col("view_hash_last")) & (
        sf.col("position") == sf.col("position_last")
    )
    regular = (
        (sf.col("deliveries") == sf.size("processes"))
        & (sf.col("processes_hash") == sf.col("due_hash"))
        & one_place
        & (sf.col("to_hash") == sf.col("to_hash_last"))
        & (sf.col("complete") | ~sf.col("safe"))
    )
    delivered, left, entered = sf.col("deliveries") > 0, sf.col("leave_step"), sf.col("enter_step")
    requeued = sf.coalesce(sf.col("queue_hash") != sf.col("queue_hash_last"), sf.lit(False))
    unqueued = (
        left.isNotNull() & ~requeued & is_queue_of_delivery() & sf.coalesce(left < entered, sf.lit(True))
    )
    to_all = sf.xxhash64(sf.lit(""))
    for_some = (sf.col("to_hash") != to_all) | (sf.col("to_hash_last") != to_all)
    special = for_some | sf.col("for_client")
    irregular = delivered & ~sf.coalesce(regular, sf.lit(False))
    flags = {
        "irregular": irregular,
        "group_hash": sf.when(
            grouped & irregular & one_place & ~for_some & sf.col("start").isNotNull(),
            sf.xxhash64("run", "view_hash", "start", "safe", "deliveries", "processes_hash"),
        ),
        "misplaced": delivered & ~one_place,
        "spurious": delivered & (sf.col("broadcasts") == 0),
        "broadcast_again": sf.col("broadcasts") > 1,
        "requeued": requeued,
        "unqueued": unqueued,
        "special": special,
        "withheld": (sf.col("broadcasts") > 0) & ~delivered & special,
        "nonbinding": delivered & ~sf.coalesce(sf.col("safe") | sf.col("binding"), sf.lit(False)),
        "premature": sf.coalesce(sf.col("own_delivery_step") < sf.col("broadcast_step"), sf.lit(False)),
        "unheard": delivered & sf.col("broadcast_step").isNotNull() & sf.col("own_delivery_step").isNull(),
    }
    due = (
        (sf.col("run") == sf.col("of_run"))
        & (sf.col("view_hash") == sf.col("of_view"))
        & (sf.col("to_hash") == sf.col("of_to"))
        & (sf.col("position") >= sf.col("start"))
        & (sf.col("position") < sf.col("end"))
    )
    flagged = messages.join(obligations, due, "left").withColumns(flags)
    return flagged.drop(*obligations.drop("view").columns, *_ONLY_FOR_FLAGS)
