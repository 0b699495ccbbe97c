"""The ledger: one row for each message, and how many there are with which something is amiss.

It is made in one pass over the exploded events and answers most questions at once, because what is wrong with
a message nearly always shows in its counts.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.core.priority import HIGHEST
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, process_id
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT

_MARKS = ("odd", "unknown", "requeued", "unqueued", "withheld", "unbound")


@dataclass(frozen=True)
class Census:
    """How much there is of one priority in one run.

    The last of them should be nothing, or little: messages that were broadcast and delivered nowhere; those
    not delivered once by each process that has to, at one place (`odd`); delivered but never broadcast
    (`unknown`); queued to be ordered in more than one view (`requeued`), or ordered without (`unqueued`);
    not delivered, perhaps because they were not for all or repeat a client's request (`withheld`); delivered
    only by those who fell out of the view, so that it binds nobody (`unbound`).
    """

    run: str
    priority: int
    broadcasts: int
    messages: int
    deliveries: int
    safe: int
    queue_entries: int
    undelivered: int
    odd: int
    unknown: int
    requeued: int
    unqueued: int
    withheld: int
    unbound: int


def count_messages(ledger: DataFrame) -> DataFrame:
    """How many messages of each priority there are in each run, and with how many something is amiss."""
    delivered = sf.col("deliveries") > 0
    return ledger.groupBy("run", "priority").agg(
        sf.count_if(sf.col("broadcasts") > 0).alias("broadcasts"),
        sf.count_if(delivered).alias("messages"),
        sf.sum("deliveries").alias("deliveries"),
        sf.count_if(delivered & sf.col("safe")).alias("safe"),
        sf.sum("queue_entries").alias("queue_entries"),
        sf.count_if((sf.col("broadcasts") > 0) & ~delivered).alias("undelivered"),
        *(sf.count_if(mark).alias(mark) for mark in _MARKS),
    )


def is_named() -> Column:
    """Whether the packet of a row only names its messages."""
    return sf.col("event").isin(SENT, RECEIVED) & (sf.col("bytes") == 0)


def enters_queue() -> Column:
    """Whether a row is a message's way into the queue that decides the order in its view."""
    received = (sf.col("event") == RECEIVED) & (sf.col("position") < 0) & ~is_named()
    return sf.col("orders_by_rank") & (sf.col("process") == sf.col("orderer")) & received


def leaves_queue() -> Column:
    """Whether a row is a message's way out of that queue."""
    placed = (sf.col("event") == SENT) & (sf.col("position") >= 0)
    return sf.col("orders_by_rank") & (sf.col("process") == sf.col("orderer")) & placed


def is_offered() -> Column:
    """Whether a row is a message's way into its sender's own queue."""
    return sf.col("sends_by_rank") & _is_own() & (sf.col("event") == BROADCAST)


def is_taken() -> Column:
    """Whether a row may be a message's way out of its sender's own queue: the first such row is."""
    return sf.col("sends_by_rank") & _is_own() & (sf.col("event") == SENT) & ~is_named()


def queue_rows(events: DataFrame, views: DataFrame, telling: Column) -> DataFrame:
    """The rows that tell something, with who orders in their view, and the rank of what enters a queue."""
    known = views.select(
        "run", "view_print", "orderer", "orders_by_rank", "sends_by_rank", "ageing_ns", "flush_ns"
    )
    unplaced = (sf.col("event") == RECEIVED) & (sf.col("position") < 0)
    maybe = sf.col("event").isin(BROADCAST, SENT, DELIVERED) | unplaced
    return (
        events.where(maybe)
        .join(sf.broadcast(known), ["run", "view_print"], "left")
        .where(telling)
        .withColumn("rank", _rank())
        .drop("ageing_ns", "flush_ns")
    )


def ledger(events: DataFrame, views: DataFrame) -> DataFrame:
    """One row for each message: its broadcast, who delivered it and where, and its way through the queues.

    *The* queue is the one that decides the order: where one member orders in a view, a message enters when
    that member receives it without a position and leaves when it sends it with one. Before, it is in its
    sender's own queue: it is *offered* there by its broadcast, and *taken* when its sender first sends a
    packet that carries it. Only queues are looked at that go by rank. What a row tells is put in columns of
    its own before it is exploded (null where it tells nothing of the kind), so that a message costs only
    minima.
    """
    is_broadcast, is_delivery = sf.col("event") == BROADCAST, sf.col("event") == DELIVERED
    enters, leaves, offered, taken = enters_queue(), leaves_queue(), is_offered(), is_taken()
    telling = queue_rows(events, views, is_broadcast | is_delivery | enters | leaves | taken).withColumns(
        {
            "broadcast_ns": sf.when(is_broadcast, sf.col("time_ns")),
            "delivery_ns": sf.when(is_delivery, sf.col("time_ns")),
            "to_print": sf.when(~is_named(), sf.xxhash64("to")),
            "for_client": is_broadcast & (sf.col("packet") != ""),
            "queue_print": sf.when(enters | leaves, sf.col("view_print")),
            "offer_print": sf.when(offered, sf.col("view_print")),
            "take_print": sf.when(taken, sf.col("view_print")),
            "view_print": sf.when(is_delivery, sf.col("view_print")),
            "delivered_at": sf.when(is_delivery, sf.col("position")),
            "process_print": sf.when(is_delivery, sf.xxhash64("process")),
            "own_delivery_ns": sf.when(is_delivery & _is_own(), sf.col("time_ns")),
            "enter_step": sf.when(enters, sf.col("step")),
            "enter_rank": sf.when(enters, sf.col("rank")),
            "leave_step": sf.when(leaves, sf.col("step")),
            "left_at": sf.when(leaves, sf.col("position")),
            "offer_step": sf.when(offered, sf.col("step")),
            "offer_rank": sf.when(offered, sf.col("rank")),
            "take_step": sf.when(taken, sf.col("step")),
        }
    )
    return (
        explode_batches(telling)
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.max("priority").alias("priority"),
            sf.max("safe").alias("safe"),
            sf.max("for_client").alias("for_client"),
            sf.max(sf.length("priorities") > 0).alias("in_line"),
            sf.min("to_print").alias("to_print"),
            sf.max("to_print").alias("to_print_last"),
            sf.count("broadcast_ns").alias("broadcasts"),
            sf.min("broadcast_ns").alias("broadcast_ns"),
            sf.count("process_print").alias("deliveries"),
            sf.bit_xor("process_print").alias("processes_print"),
            sf.min("view_print").alias("view_print"),
            sf.max("view_print").alias("view_print_last"),
            sf.min(sf.col("delivered_at") + sf.col("index")).alias("position"),
            sf.max(sf.col("delivered_at") + sf.col("index")).alias("position_last"),
            sf.min("delivery_ns").alias("delivery_ns"),
            sf.min("own_delivery_ns").alias("own_delivery_ns"),
            *_way_through_queues(),
        )
    )


def _way_through_queues() -> tuple[Column, ...]:
    return (
        sf.min("queue_print").alias("queue_print"),
        sf.max("queue_print").alias("queue_print_last"),
        (sf.count("enter_step") + sf.count("offer_step")).alias("queue_entries"),
        sf.min("enter_step").alias("enter_step"),
        sf.min("enter_rank").alias("rank"),
        sf.min("leave_step").alias("leave_step"),
        sf.min(sf.col("left_at") + sf.col("index")).alias("leave_position"),
        sf.min("offer_print").alias("offer_print"),
        sf.min("offer_step").alias("offer_step"),
        sf.min("offer_rank").alias("offer_rank"),
        sf.min("take_step").alias("take_step"),
        sf.min_by("take_print", "take_step").alias("take_print"),
        sf.min_by("index", "take_step").alias("take_index"),
    )


def _is_own() -> Column:
    return sf.col("process") == process_id("sender", "sender_incarnation")


def _rank() -> Column:
    """`Starvation.sort_key` as Spark computes it, for what has a batch's `urgency`."""
    urgency = sf.when(sf.length("priorities") > 0, sf.lit(HIGHEST)).otherwise(sf.col("level")).cast("long")
    period = sf.expr("(time_ns - pmod(time_ns, flush_ns)) div flush_ns")
    return (
        sf.when(sf.col("ageing_ns").isNotNull(), sf.col("time_ns") - urgency * sf.col("ageing_ns"))
        .when(sf.col("flush_ns").isNotNull(), period * (HIGHEST + 1) - urgency)
        .otherwise(-urgency)
    )


def places_it() -> Column:
    """Whether a queue is of the view in which the message was delivered, if it was."""
    queue = sf.col("queue_print")
    return sf.coalesce((queue == sf.col("view_print")) | (queue == sf.col("view_print_last")), sf.lit(True))


def mark(ledger: DataFrame, audiences: DataFrame) -> DataFrame:
    """Say of each message in the ledger whether something is amiss with it; if not, also its view's number.

    That a message was delivered by exactly those who have to, once each, shows in the number of deliveries
    and in the hashes of the processes together. A safe one that only some of those delivered who went on from
    the view is odd, even if these are the ones who have to.
    """
    whole = (
        (sf.col("deliveries") == sf.size("processes"))
        & (sf.col("processes_print") == sf.col("due_print"))
        & (sf.col("view_print") == sf.col("view_print_last"))
        & (sf.col("position") == sf.col("position_last"))
        & (sf.col("to_print") == sf.col("to_print_last"))
        & (sf.col("complete") | ~sf.col("safe"))
    )
    delivered, left, entered = sf.col("deliveries") > 0, sf.col("leave_step"), sf.col("enter_step")
    requeued = sf.coalesce(sf.col("queue_print") != sf.col("queue_print_last"), sf.lit(False))
    to_all = sf.xxhash64(sf.lit(""))
    for_some = (sf.col("to_print") != to_all) | (sf.col("to_print_last") != to_all)
    special = for_some | sf.col("for_client")
    marks = {
        "odd": delivered & ~sf.coalesce(whole, sf.lit(False)),
        "unknown": delivered & (sf.col("broadcasts") == 0),
        "requeued": requeued,
        "unqueued": left.isNotNull() & ~requeued & places_it() & sf.coalesce(left < entered, sf.lit(True)),
        "special": special,
        "withheld": (sf.col("broadcasts") > 0) & ~delivered & special,
        "unbound": delivered & ~sf.coalesce(sf.col("safe") | sf.col("bound"), sf.lit(False)),
    }
    due = (
        (sf.col("run") == sf.col("of_run"))
        & (sf.col("view_print") == sf.col("of_view"))
        & (sf.col("to_print") == sf.col("of_to"))
        & (sf.col("position") >= sf.col("start"))
        & (sf.col("position") < sf.col("end"))
    )
    return ledger.join(audiences, due, "left").withColumns(marks).drop(*audiences.drop("view").columns)
