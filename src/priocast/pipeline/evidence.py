"""What the checks and tables look at: the events, and a ledger with one row for each message.

The ledger is made in one pass over the exploded events and kept in memory; it answers most questions at
once, because what is wrong with a message nearly always shows in its counts. Only messages that look odd
there are looked up again, delivery by delivery, to say who did what and where.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.pipeline.sources import (
    MESSAGE_KEY,
    Run,
    explode_batches,
    messages,
    process_id,
    read_events,
    views,
)
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT


@dataclass(frozen=True)
class Census:
    """How much there is of one priority in one run.

    The last four should be nothing: messages that were broadcast and delivered nowhere, delivered but not
    once by each member at one place, delivered but never broadcast, ordered without having been queued.
    """

    run: str
    priority: int
    broadcasts: int
    messages: int
    deliveries: int
    queue_entries: int
    undelivered: int
    odd: int
    unknown: int
    unqueued: int


@dataclass(frozen=True)
class Evidence:
    """One or several runs, ready to be judged."""

    runs: tuple[Run, ...]
    events: DataFrame
    views: DataFrame
    ledger: DataFrame
    census: tuple[Census, ...]

    @property
    def priorities(self) -> tuple[int, ...]:
        """The priorities in use, in any of the runs."""
        return tuple(sorted({counted.priority for counted in self.census}))

    @property
    def deliveries(self) -> DataFrame:
        """One row for each message that each process delivered."""
        return messages(self.events.where(sf.col("event") == DELIVERED))

    def deliveries_of(self, few: DataFrame) -> DataFrame:
        """Every delivery of a few messages; `few` is sent to where the deliveries are."""
        return self.deliveries.join(sf.broadcast(few.select(*MESSAGE_KEY)), list(MESSAGE_KEY), "left_semi")


@contextmanager
def gather(spark: SparkSession, runs: Sequence[Run]) -> Iterator[Evidence]:
    """Read the runs and keep what every check needs in memory until the end of the block."""
    events = read_events(spark, runs)
    members = views(events).cache()
    accounts = mark(ledger(events), sf.broadcast(members)).cache()
    try:
        census = tuple(Census(**row.asDict()) for row in count_messages(accounts).collect())
        assert all(counted.run for counted in census), "every file is of one of the runs"
        yield Evidence(tuple(runs), events, sf.broadcast(members), accounts, census)
    finally:
        accounts.unpersist()
        members.unpersist()


def count_messages(ledger: DataFrame) -> DataFrame:
    """How many messages of each priority there are in each run, and with how many something is amiss."""
    return ledger.groupBy("run", "priority").agg(
        sf.count_if(sf.col("broadcasts") > 0).alias("broadcasts"),
        sf.count_if(sf.col("deliveries") > 0).alias("messages"),
        sf.sum("deliveries").alias("deliveries"),
        sf.count("enter_step").alias("queue_entries"),
        sf.count_if((sf.col("broadcasts") > 0) & (sf.col("deliveries") == 0)).alias("undelivered"),
        *(sf.count_if(mark).alias(mark) for mark in ("odd", "unknown", "unqueued")),
    )


def ledger(events: DataFrame) -> DataFrame:
    """One row for each message: its broadcast, who delivered it and where, and its way through the queue.

    The queue is the one that decides the order: at the run's orderer a message enters when it is received
    without a position and leaves when it is sent with one. What a row tells is put in columns of its own
    before it is exploded (null where it tells nothing of the kind), so that a message costs only minima.
    """
    event, at_orderer = sf.col("event"), sf.col("at_orderer")
    is_broadcast, is_delivery = event == BROADCAST, event == DELIVERED
    is_own = is_delivery & (sf.col("process") == process_id("sender", "sender_incarnation"))
    enters = at_orderer & (event == RECEIVED) & (sf.col("position") < 0)
    leaves = at_orderer & (event == SENT) & (sf.col("position") >= 0)
    telling = (
        events.where(is_broadcast | is_delivery | enters | leaves)
        .withColumn("broadcast_ns", sf.when(is_broadcast, sf.col("time_ns")))
        .withColumn("view", sf.when(is_delivery, sf.col("view")))
        .withColumn("delivered_at", sf.when(is_delivery, sf.col("position")))
        .withColumn("process_print", sf.when(is_delivery, sf.xxhash64("process")))
        .withColumn("own_delivery_ns", sf.when(is_own, sf.col("time_ns")))
        .withColumn("orderer_incarnation", sf.when(enters | leaves, sf.col("incarnation")))
        .withColumn("enter_step", sf.when(enters, sf.col("step")))
        .withColumn("rank", sf.when(enters, sf.col("rank")))
        .withColumn("leave_step", sf.when(leaves, sf.col("step")))
        .withColumn("left_at", sf.when(leaves, sf.col("position")))
    )
    return (
        explode_batches(telling)
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.max("priority").alias("priority"),
            sf.count("broadcast_ns").alias("broadcasts"),
            sf.min("broadcast_ns").alias("broadcast_ns"),
            sf.count("process_print").alias("deliveries"),
            sf.bit_xor("process_print").alias("processes_print"),
            sf.min("view").alias("view"),
            sf.max("view").alias("view_last"),
            sf.min(sf.col("delivered_at") + sf.col("index")).alias("position"),
            sf.max(sf.col("delivered_at") + sf.col("index")).alias("position_last"),
            sf.min("own_delivery_ns").alias("own_delivery_ns"),
            sf.max("orderer_incarnation").alias("orderer_incarnation"),
            sf.min("enter_step").alias("enter_step"),
            sf.min("rank").alias("rank"),
            sf.min("leave_step").alias("leave_step"),
            sf.min(sf.col("left_at") + sf.col("index")).alias("leave_position"),
        )
    )


def mark(ledger: DataFrame, views: DataFrame) -> DataFrame:
    """Say of each message in the ledger whether something is amiss with it; in a good run, with none.

    That a message was delivered by exactly the members of its view, once each, shows in the number of
    deliveries and in the hashes of the processes together.
    """
    whole = (
        (sf.col("deliveries") == sf.size("members"))
        & (sf.col("processes_print") == sf.col("members_print"))
        & (sf.col("view") == sf.col("view_last"))
        & (sf.col("position") == sf.col("position_last"))
    )
    delivered, left, entered = sf.col("deliveries") > 0, sf.col("leave_step"), sf.col("enter_step")
    marks = {
        "odd": delivered & ~sf.coalesce(whole, sf.lit(False)),
        "unknown": delivered & (sf.col("broadcasts") == 0),
        "unqueued": left.isNotNull() & sf.coalesce(left < entered, sf.lit(True)),
    }
    return ledger.join(views, ["run", "view"], "left").select(
        *ledger.columns, *(condition.alias(name) for name, condition in marks.items())
    )
