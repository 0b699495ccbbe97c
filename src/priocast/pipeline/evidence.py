"""What the checks and tables look at: the events, and a ledger with one row for each message.

The ledger is made in one pass over the exploded events and kept in memory; it answers most questions at
once, because what is wrong with a message nearly always shows in its counts. Only messages that look odd
there are looked up again, delivery by delivery, to say who did what and where.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from priocast.pipeline.sources import (
    MESSAGE_KEY,
    Run,
    describe_runs,
    explode_batches,
    messages,
    process_id,
    read_events,
    views,
)
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT


@dataclass(frozen=True)
class Census:
    """How much of everything a run has."""

    events: int
    broadcasts: int
    messages: int
    deliveries: int
    queue_entries: int


@dataclass(frozen=True)
class Evidence:
    """One or several runs, ready to be judged. `priorities` are those in use, in any of the runs."""

    runs: DataFrame
    events: DataFrame
    views: DataFrame
    ledger: DataFrame
    census: dict[str, Census]
    priorities: tuple[int, ...]

    @property
    def deliveries(self) -> DataFrame:
        """One row for each message that each process delivered."""
        return messages(self.events.where(F.col("event") == DELIVERED))


@contextmanager
def gather(spark: SparkSession, runs: Sequence[Run]) -> Iterator[Evidence]:
    """Read the runs and keep what every check needs in memory until the end of the block."""
    events = read_events(spark, runs)
    described = F.broadcast(describe_runs(spark, runs))
    members = views(events).cache()
    accounts = ledger(events, described).cache()
    try:
        counts = count_messages(accounts).collect()
        census = {run.name: _census(run, [row for row in counts if row["run"] == run.name]) for run in runs}
        priorities = tuple(sorted({row["priority"] for row in counts}))
        yield Evidence(described, events, F.broadcast(members), accounts, census, priorities)
    finally:
        accounts.unpersist()
        members.unpersist()


def count_messages(ledger: DataFrame) -> DataFrame:
    """How many messages of each priority were broadcast, delivered and queued in each run."""
    return ledger.groupBy("run", "priority").agg(
        F.count_if(F.col("broadcasts") > 0).alias("broadcasts"),
        F.count_if(F.col("deliveries") > 0).alias("messages"),
        F.sum("deliveries").alias("deliveries"),
        F.count("enter_step").alias("queue_entries"),
    )


def _census(run: Run, counts: list[Row]) -> Census:
    return Census(
        run.events,
        sum(row["broadcasts"] for row in counts),
        sum(row["messages"] for row in counts),
        sum(row["deliveries"] for row in counts),
        sum(row["queue_entries"] for row in counts),
    )


def ledger(events: DataFrame, runs: DataFrame) -> DataFrame:
    """One row for each message: when it was broadcast, who delivered it and where, and its way through the queue.

    The queue is the one that decides the order: at the run's orderer a message enters when it is received
    without a position and leaves when it is sent with one. What a row tells is put in columns of its own
    before it is exploded (null where it tells nothing of the kind), so that a message costs only minima.
    """
    event, at_orderer = F.col("event"), F.col("member") == F.col("orderer")
    is_broadcast, is_delivery = event == BROADCAST, event == DELIVERED
    is_own = is_delivery & (F.col("process") == process_id("sender", "sender_incarnation"))
    enters = at_orderer & (event == RECEIVED) & (F.col("position") < 0)
    leaves = at_orderer & (event == SENT) & (F.col("position") >= 0)
    telling = (
        events.join(runs.select("run", "orderer"), "run")
        .where(is_broadcast | is_delivery | enters | leaves)
        .withColumn("broadcast_ns", F.when(is_broadcast, F.col("time_ns")))
        .withColumn("view", F.when(is_delivery, F.col("view")))
        .withColumn("delivered_at", F.when(is_delivery, F.col("position")))
        .withColumn("process_print", F.when(is_delivery, F.xxhash64("process")))
        .withColumn("own_delivery_ns", F.when(is_own, F.col("time_ns")))
        .withColumn("orderer_incarnation", F.when(enters | leaves, F.col("incarnation")))
        .withColumn("enter_step", F.when(enters, F.col("step")))
        .withColumn("enter_ns", F.when(enters, F.col("time_ns")))
        .withColumn("leave_step", F.when(leaves, F.col("step")))
        .withColumn("left_at", F.when(leaves, F.col("position")))
    )
    return (
        explode_batches(telling)
        .groupBy(*MESSAGE_KEY)
        .agg(
            F.max("priority").alias("priority"),
            F.count("broadcast_ns").alias("broadcasts"),
            F.min("broadcast_ns").alias("broadcast_ns"),
            F.count("process_print").alias("deliveries"),
            F.bit_xor("process_print").alias("processes_print"),
            F.min("view").alias("view"),
            F.max("view").alias("view_last"),
            F.min(F.col("delivered_at") + F.col("index")).alias("position"),
            F.max(F.col("delivered_at") + F.col("index")).alias("position_last"),
            F.min("own_delivery_ns").alias("own_delivery_ns"),
            F.max("orderer_incarnation").alias("orderer_incarnation"),
            F.min("enter_step").alias("enter_step"),
            F.min("enter_ns").alias("enter_ns"),
            F.min("leave_step").alias("leave_step"),
            F.min(F.col("left_at") + F.col("index")).alias("leave_position"),
        )
    )


def odd_messages(evidence: Evidence) -> DataFrame:
    """Messages that were not delivered once, by each member of one view, at one position: in a good run none.

    That who delivered it is exactly the view shows in the number of deliveries and in the hashes of the
    processes together.
    """
    whole = (
        (F.col("deliveries") == F.size("members"))
        & (F.col("processes_print") == F.col("members_print"))
        & (F.col("view") == F.col("view_last"))
        & (F.col("position") == F.col("position_last"))
    )
    return (
        evidence.ledger.where(F.col("deliveries") > 0)
        .join(evidence.views, ["run", "view"], "left")
        .where(~F.coalesce(whole, F.lit(False)))
        .select(evidence.ledger.columns)
    )


def deliveries_of(evidence: Evidence, few: DataFrame) -> DataFrame:
    """Every delivery of a few messages; `few` is sent to where the deliveries are."""
    return evidence.deliveries.join(F.broadcast(few.select(*MESSAGE_KEY)), list(MESSAGE_KEY), "left_semi")
