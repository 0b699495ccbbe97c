"""The ledger: one row for each message, and how many there are with which something is amiss.

It is made in one pass over the exploded events and answers most questions at once, because what is wrong with
a message nearly always shows in its counts.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, process_id
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT

_MARKS = ("odd", "unknown", "requeued", "unqueued", "withheld", "unbound")


@dataclass(frozen=True)
class Census:
    """How much there is of one priority in one run.

    The last of them should be nothing, or little: messages that were broadcast and delivered nowhere; those
    not delivered once by each process that has to, at one place (`odd`); delivered but never broadcast
    (`unknown`); queued in more than one view (`requeued`); ordered without having been queued (`unqueued`);
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


def enters_queue(orderer: Column) -> Column:
    """Whether a row is a message's way into the queue that decides the order in its view."""
    return (sf.col("process") == orderer) & (sf.col("event") == RECEIVED) & (sf.col("position") < 0)


def leaves_queue(orderer: Column) -> Column:
    """Whether a row is a message's way out of that queue."""
    return (sf.col("process") == orderer) & (sf.col("event") == SENT) & (sf.col("position") >= 0)


def queue_rows(events: DataFrame, views: DataFrame, also: Column | None = None) -> DataFrame:
    """The rows by which messages enter and leave queues, and `also` others; with who orders in their view."""
    to_order, ordered = sf.col("position") < 0, sf.col("position") >= 0
    maybe = ((sf.col("event") == RECEIVED) & to_order) | ((sf.col("event") == SENT) & ordered)
    orderer = sf.col("orderer")
    telling = enters_queue(orderer) | leaves_queue(orderer)
    orderers = sf.broadcast(views.select("run", "view_print", "orderer"))
    return (
        events.where(maybe if also is None else maybe | also)
        .join(orderers, ["run", "view_print"], "left")
        .where(telling if also is None else telling | also)
    )


def ledger(events: DataFrame, views: DataFrame) -> DataFrame:
    """One row for each message: its broadcast, who delivered it and where, and its way through the queue.

    The queue is the one that decides the order: where one member orders in a view, a message enters when that
    member receives it without a position and leaves when it sends it with one. What a row tells is put in
    columns of its own before it is exploded (null where it tells nothing of the kind), so that a message
    costs only minima.
    """
    is_broadcast, is_delivery = sf.col("event") == BROADCAST, sf.col("event") == DELIVERED
    is_own = is_delivery & (sf.col("process") == process_id("sender", "sender_incarnation"))
    enters, leaves = enters_queue(sf.col("orderer")), leaves_queue(sf.col("orderer"))
    telling = queue_rows(events, views, also=is_broadcast | is_delivery).withColumns(
        {
            "broadcast_ns": sf.when(is_broadcast, sf.col("time_ns")),
            "to_print": sf.xxhash64("to"),
            "for_client": is_broadcast & (sf.col("packet") != ""),
            "queue_print": sf.when(enters | leaves, sf.col("view_print")),
            "view_print": sf.when(is_delivery, sf.col("view_print")),
            "delivered_at": sf.when(is_delivery, sf.col("position")),
            "process_print": sf.when(is_delivery, sf.xxhash64("process")),
            "own_delivery_ns": sf.when(is_own, sf.col("time_ns")),
            "enter_step": sf.when(enters, sf.col("step")),
            "rank": sf.when(enters, sf.col("rank")),
            "leave_step": sf.when(leaves, sf.col("step")),
            "left_at": sf.when(leaves, sf.col("position")),
        }
    )
    return (
        explode_batches(telling)
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.max("priority").alias("priority"),
            sf.max("safe").alias("safe"),
            sf.max("for_client").alias("for_client"),
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
            sf.min("own_delivery_ns").alias("own_delivery_ns"),
            sf.min("queue_print").alias("queue_print"),
            sf.max("queue_print").alias("queue_print_last"),
            sf.count("enter_step").alias("queue_entries"),
            sf.min("enter_step").alias("enter_step"),
            sf.min("rank").alias("rank"),
            sf.min("leave_step").alias("leave_step"),
            sf.min(sf.col("left_at") + sf.col("index")).alias("leave_position"),
        )
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
