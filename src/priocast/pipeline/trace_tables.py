"""The tables that the checks and measurements read: rows of batches, views, and one row for each message.

Only the messages that the message table flags are looked up again, delivery by delivery, to find who did what
and where. In a correct run there are hardly any.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from priocast.core.errors import UnreadableTrace
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation
from priocast.pipeline.divergence import divergences, may_diverge, owing_until_divergence, unbound
from priocast.pipeline.membership import (
    GroupView,
    delivery_obligations,
    reconstruct_views,
    truncated_processes,
    unrecorded_processes,
)
from priocast.pipeline.message_table import (
    MessageCounts,
    count_messages,
    enters_queue,
    flag_messages,
    leaves_queue,
    message_table,
    queue_rows,
)
from priocast.pipeline.process_history import TraceHistory, read_histories
from priocast.pipeline.service_tables import ServiceTables, load_services
from priocast.pipeline.session import plan_for
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import (
    MESSAGE_KEY,
    STREAM_KEY,
    StoredRun,
    StoredRuns,
    as_messages,
    explode_batches,
    message_hash,
    messages,
    read_batches,
)
from priocast.trace.schema import BROADCAST, DELIVERED, ViewName

Views = Mapping[ViewName, GroupView]

_VIEWS_SCHEMA = """run string, view long, coordinator string, members array<string>, orderer string,
    first_position long, gapless boolean, ordered_by_consumption boolean, orders_by_priority boolean,
    sends_by_priority boolean,
    ageing_ns long, release_ns long"""
_PARTICIPATIONS_SCHEMA = """run string, view long, coordinator string, process string, name string,
    next_view string, owes_from long, owes_until long, final boolean, binds boolean"""
_OBLIGATIONS_SCHEMA = """of_run string, view long, coordinator string, to string, start long, end long,
    processes array<string>, binding boolean, complete boolean"""


@dataclass(frozen=True)
class TraceTables:
    """One or several runs, ready to be checked and measured.

    `batches` are the recorded rows, `messages` has one row for each message. `views` and `participations`
    (which member was in which view, and which view it continued to) are small, and are broadcast to where the
    messages are. `irregular` has every delivery of the irregular messages, `requeued` every queue of the
    messages that were in several; both are None if there are no such messages. `diverged` says from where on
    the deliveries of a member that dropped out of a view do not count, if that can be. `services` are the
    messages that have a quality of service, if there are any.
    """

    stored: StoredRuns
    histories: Mapping[str, TraceHistory]
    views_of: Mapping[str, Views]
    batches: DataFrame
    views: DataFrame
    participations: DataFrame
    messages: DataFrame
    irregular: DataFrame | None
    requeued: DataFrame | None
    counts: tuple[MessageCounts, ...]
    diverged: DataFrame | None = None
    services: ServiceTables | None = None

    @property
    def runs(self) -> tuple[StoredRun, ...]:
        return self.stored.runs

    @property
    def spark(self) -> SparkSession:
        return self.batches.sparkSession

    @property
    def priorities(self) -> tuple[int, ...]:
        """The priorities in use, in any of the runs."""
        return tuple(sorted({count.priority for count in self.counts}))

    @property
    def delivered_batches(self) -> DataFrame:
        """The recorded deliveries, one row for each part of a batch."""
        return self.batches.where(sf.col("event") == DELIVERED)

    @property
    def deliveries(self) -> DataFrame:
        """One row for each message that each process delivered."""
        return messages(self.delivered_batches)

    def deliveries_of(self, few: DataFrame) -> DataFrame:
        """Every delivery of a few messages."""
        return as_messages(rows_of(self.delivered_batches, few))

    def may_lack_position(self) -> DataFrame:
        """The messages that need no position in the order: withheld and nonbinding ones.

        `special` are those that were not for all or on behalf of a client: the order may skip them.
        """
        found = self.messages.where("withheld or (nonbinding and not irregular)")
        found = found.select(*MESSAGE_KEY, "special")
        if self.irregular is None:
            return found
        binding = self.irregular.groupBy(*MESSAGE_KEY).agg(sf.max("binding").alias("binding"))
        special = self.messages.where("irregular").select(*MESSAGE_KEY, "special")
        nonbinding = binding.where("not binding").join(special, list(MESSAGE_KEY))
        return found.unionByName(nonbinding.select(*MESSAGE_KEY, "special"))

    def any(self, count: str) -> bool:
        """Whether any run has messages that this count includes."""
        return any(getattr(counts, count) for counts in self.counts)

    def truncated_processes(self, run: StoredRun) -> set[str]:
        """The processes of a run whose records may lack the last rows."""
        if run.loses_nothing:
            return set()
        return truncated_processes(self.histories[run.name], self.views_of[run.name])


@contextmanager
def load_trace(stored: StoredRuns) -> Iterator[TraceTables]:
    """Read the runs, and keep what every check needs in memory until the end of the block."""
    spark, runs = stored.spark, stored.runs
    plan_for(spark, sum(run.events for run in runs))
    batches = read_batches(stored)
    histories = read_histories(batches, runs)
    views_of = {run.name: reconstruct_views(histories[run.name], run.primary) for run in runs}
    _check_records(runs, histories, views_of)
    views = _views(spark, views_of).cache()
    participations = _participations(spark, runs, views_of)
    obligations = _obligations(spark, runs, views_of, histories)
    table = flag_messages(message_table(batches, views), sf.broadcast(obligations)).cache()
    cached = [views, table]
    try:
        counts = tuple(MessageCounts(**row.asDict()) for row in count_messages(table).collect())
        assert all(count.run for count in counts), "every file belongs to one of the runs"
        irregular = requeued = diverged = None
        if any(count.irregular for count in counts):
            irregular = irregular_deliveries(batches, table, sf.broadcast(participations)).cache()
            cached.append(irregular)
            if may_diverge(views_of):
                alone = rows_of(
                    batches.where(sf.col("event") == DELIVERED), table.where("nonbinding and not irregular")
                )
                nonbinding = irregular.where("not binding").unionByName(
                    as_messages(alone), allowMissingColumns=True
                )
                diverged = divergences(nonbinding, sf.broadcast(views)).cache()
                cached.append(diverged)
                irregular = unbound(irregular, diverged)
                participations = owing_until_divergence(participations, diverged)
        if any(count.requeued for count in counts):
            requeued = requeued_messages(batches, sf.broadcast(views), table).cache()
            cached.append(requeued)
        with load_services(stored, histories) as services:
            yield TraceTables(
                stored=stored,
                histories=histories,
                views_of=views_of,
                batches=batches,
                views=sf.broadcast(views),
                participations=sf.broadcast(participations),
                messages=table,
                irregular=irregular,
                requeued=requeued,
                counts=counts,
                diverged=diverged,
                services=services,
            )
    finally:
        for frame in cached:
            frame.unpersist()


def _check_records(
    runs: Sequence[StoredRun], histories: Mapping[str, TraceHistory], views_of: Mapping[str, Views]
) -> None:
    """Raise if the files of a member are missing: nothing can be concluded about it, nor that all is well.

    The record of a simulated run is complete, so there the checks find a violation.
    """
    for run in runs:
        if run.loses_nothing:
            continue
        for process, view in unrecorded_processes(histories[run.name], views_of[run.name]):
            raise UnreadableTrace(
                f"{run.location} lacks the record of {process}, which was in view {view} to the end: copy "
                "the files of every member"
            )


def rows_of(batches: DataFrame, few: DataFrame) -> DataFrame:
    """The exploded rows of some messages; batches that cannot contain one of them are not exploded.

    Usually these are a few, but in a damaged trace they may be all: then their keys would be a large table to
    broadcast, and their hashes are eight bytes each.
    """
    numbers = few.groupBy(*STREAM_KEY).agg(
        sf.min("number").alias("lowest"), sf.max("number").alias("highest")
    )
    overlaps = (sf.col("first") <= sf.col("highest")) & (sf.col("first") + sf.col("count") > sf.col("lowest"))
    candidates = batches.join(sf.broadcast(numbers), list(STREAM_KEY)).where(overlaps)
    wanted = few.select(message_hash().alias("message_hash"))
    return (
        explode_batches(candidates.drop("lowest", "highest"))
        .withColumn("message_hash", message_hash())
        .join(sf.broadcast(wanted), "message_hash", "left_semi")
    )


def irregular_deliveries(batches: DataFrame, table: DataFrame, participations: DataFrame) -> DataFrame:
    """Every delivery of the irregular messages; `to` is what the sender asked for, if it is recorded.

    `binding` is false if, in a primary group, only members that dropped out of the view delivered the message
    in it, and the message is not safe.
    """
    rows = rows_of(batches.where(sf.col("event").isin(BROADCAST, DELIVERED)), table.where("irregular"))
    of_message = Window.partitionBy("message_hash")
    in_view = Window.partitionBy("message_hash", "view_hash")
    asked = sf.max(sf.when(sf.col("event") == BROADCAST, sf.col("to"))).over(of_message)
    binding = participations.select("run", "view_hash", "process", "binds")
    return (
        rows.select(
            *MESSAGE_KEY,
            "message_hash",
            "event",
            "process",
            sf.col("member").alias("name"),
            "view",
            "coordinator",
            "view_hash",
            "step",
            (sf.col("position") + sf.col("index")).alias("position"),
            sf.coalesce(asked, sf.max("to").over(of_message)).alias("to"),
            sf.max("safe").over(of_message).alias("safe"),
        )
        .where(sf.col("event") == DELIVERED)
        .join(binding, ["run", "view_hash", "process"], "left")
        .withColumn("binding", sf.col("safe") | sf.max(sf.coalesce("binds", sf.lit(True))).over(in_view))
        .drop("binds", "event")
    )


def requeued_messages(batches: DataFrame, views: DataFrame, table: DataFrame) -> DataFrame:
    """The messages that were in several queues: one row for each queue."""
    again = table.where("requeued")
    enters, leaves = enters_queue(), leaves_queue()
    return (
        rows_of(queue_rows(batches, views, enters | leaves), again)
        .groupBy(*MESSAGE_KEY, sf.col("view_hash").alias("queue_hash"))
        .agg(
            sf.max("priority").alias("priority"),
            sf.min(sf.when(enters, sf.col("sort_key"))).alias("sort_key"),
            sf.min(sf.when(enters, sf.col("step"))).alias("enter_step"),
            sf.min(sf.when(leaves, sf.col("step"))).alias("leave_step"),
            sf.min(sf.when(leaves, sf.col("position") + sf.col("index"))).alias("leave_position"),
        )
        .join(sf.broadcast(again.select(*MESSAGE_KEY, "view_hash", "view_hash_last")), list(MESSAGE_KEY))
    )


def _views(spark: SparkSession, views_of: Mapping[str, Views]) -> DataFrame:
    rows = [
        (
            run,
            *view.name,
            view.members,
            view.orderer,
            view.first_position,
            view.gapless,
            view.is_ordered_by_consumption,
            view.orders_by_priority,
            view.sends_by_priority,
            *_durations(view.order.starvation),
        )
        for run, views in views_of.items()
        for view in views.values()
    ]
    return with_view_hash(small_table(spark, rows, _VIEWS_SCHEMA))


def _durations(policy: Starvation) -> tuple[int | None, int | None]:
    """The step of ageing and the period of a periodic release, where there is one."""
    ageing_ns = policy.step_ns if isinstance(policy, Ageing) else None
    release_ns = policy.period_ns if isinstance(policy, PeriodicRelease) else None
    return ageing_ns, release_ns


def _participations(
    spark: SparkSession, runs: Sequence[StoredRun], views_of: Mapping[str, Views]
) -> DataFrame:
    rows = [
        (
            run.name,
            *view.name,
            each.process,
            each.name,
            each.next_view,
            each.owes_from,
            each.owes_until,
            view.final,
            not each.dropped_out or not run.primary or not view.survived,
        )
        for run in runs
        for view in views_of[run.name].values()
        for each in view.participations
    ]
    return with_view_hash(small_table(spark, rows, _PARTICIPATIONS_SCHEMA)).drop("view", "coordinator")


def _obligations(
    spark: SparkSession,
    runs: Sequence[StoredRun],
    views_of: Mapping[str, Views],
    histories: Mapping[str, TraceHistory],
) -> DataFrame:
    rows = [
        (
            run.name,
            *view.name,
            each.to,
            each.start,
            each.end,
            each.processes,
            each.binding or not run.primary,
            each.complete or not run.primary,
        )
        for run in runs
        for view in views_of[run.name].values()
        for each in delivery_obligations(view, histories[run.name].recipient_lists)
    ]
    due_hash = sf.aggregate(
        "processes", sf.lit(0).cast("long"), lambda before, process: before.bitwiseXOR(sf.xxhash64(process))
    )
    return small_table(spark, rows, _OBLIGATIONS_SCHEMA).select(
        "of_run",
        "view",
        "start",
        "end",
        "processes",
        "binding",
        "complete",
        sf.xxhash64("view", "coordinator").alias("of_view"),
        sf.xxhash64("to").alias("of_to"),
        due_hash.alias("due_hash"),
    )


def with_view_hash(rows: DataFrame) -> DataFrame:
    """The rows with the hash that the other tables have instead of the name of a view."""
    return rows.withColumn("view_hash", sf.xxhash64("view", "coordinator"))
