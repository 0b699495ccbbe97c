"""The tables that the checks and measurements read: rows of batches, views, and one row for each message.

Only the messages that the message table flags are looked up again, delivery by delivery, to find who did what
and where. In a correct run there are hardly any.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.core.starvation import Ageing, PeriodicRelease, Starvation
from priocast.pipeline.deliverer_groups import DelivererGroups, group_by_deliverers, judged_one_by_one
from priocast.pipeline.divergence import divergences, may_diverge, owing_until_divergence, unbound
from priocast.pipeline.membership import (
    GroupView,
    Participation,
    delivery_obligations,
    reconstruct_views,
    truncated_processes,
)
from priocast.pipeline.message_rows import deliverer_sets, irregular_deliveries, requeued_messages, rows_of
from priocast.pipeline.message_table import (
    MessageCounts,
    count_messages,
    flag_messages,
    message_table,
)
from priocast.pipeline.process_history import TraceHistory, read_histories
from priocast.pipeline.service_tables import ServiceTables, load_services
from priocast.pipeline.session import plan_for
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import (
    MESSAGE_KEY,
    StoredRun,
    StoredRuns,
    as_messages,
    hash_of_process,
    is_of,
    messages,
    read_batches,
    sender_hash,
)
from priocast.trace.schema import DELIVERED, ViewName

Views = Mapping[ViewName, GroupView]

# Sets of members are bits in a few words: to combine them costs no more than a minimum.
_RANKS_PER_WORD = 62
_VIEWS_SCHEMA = """run string, view long, coordinator string, members array<string>, orderer string,
    first_position long, gapless boolean, ordered_by_consumption boolean, orders_by_priority boolean,
    sends_by_priority boolean,
    ageing_ns long, release_ns long"""
_SENDERS_SCHEMA = "run string, sender string, sender_incarnation long"
_PARTICIPATIONS_SCHEMA = """run string, view long, coordinator string, process string, name string,
    next_view string, owes_from long, owes_until long, final boolean, binds boolean, word int, bit long"""
_OBLIGATIONS_SCHEMA = """of_run string, view long, coordinator string, to string, start long, end long,
    processes array<string>, binding boolean, complete boolean"""


@dataclass(frozen=True)
class TraceTables:
    """One or several runs, ready to be checked and measured.

    `batches` are the recorded rows, `messages` has one row for each message. `views` and `participations`
    (which member was in which view, and which view it continued to) are small, and are broadcast to where the
    messages are; so are `senders`, the names for `sender_hash`. `groups` says who delivered the irregular
    messages that are grouped; `irregular` has every delivery of the others, `irregular_sets` who delivered
    each of these; `requeued` every queue of the messages that were in several. They are None if there are no
    such messages. `diverged` says from where on the deliveries of a
    member that dropped out of a view do not count, if that can be. `services` are the messages that have a
    quality of service, if there are any.
    """

    stored: StoredRuns
    histories: Mapping[str, TraceHistory]
    views_of: Mapping[str, Views]
    batches: DataFrame
    views: DataFrame
    participations: DataFrame
    senders: DataFrame
    messages: DataFrame
    groups: DelivererGroups | None
    irregular: DataFrame | None
    irregular_sets: DataFrame | None
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
    def words(self) -> range:
        """The words that a set of members needs, if each is a bit by its rank in the view."""
        return words_for(self.views_of)

    @property
    def is_bound(self) -> Column:
        """Whether a row is of a run in which all members of a view are bound by what any delivered there."""
        return _is_bound(self.runs, self.views_of)

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
    views = _views(spark, views_of).cache()
    participations = _participations(spark, runs, views_of)
    obligations = _obligations(spark, runs, views_of, histories)
    senders = _senders(spark, histories)
    found = message_table(batches, views, senders)
    table = flag_messages(found, sf.broadcast(obligations), _is_bound(runs, views_of)).cache()
    cached = [views, table]
    try:
        counts = _counts(table)
        groups = irregular = sets = requeued = diverged = None
        if any(count.grouped for count in counts):
            groups = group_by_deliverers(batches, table, participations, words_for(views_of))
        if (alone := judged_one_by_one(table, counts, groups)) is not None:
            irregular = irregular_deliveries(
                batches,
                alone,
                sf.broadcast(participations) if any_nonbinding(runs, views_of) else None,
                selective=any(history.recipient_lists for history in histories.values()),
            ).cache()
            sets = deliverer_sets(irregular, participations, words_for(views_of)).cache()
            cached += [irregular, sets]
        if may_diverge(views_of) and any(count.irregular or count.nonbinding for count in counts):
            nonbinding = _nonbinding_deliveries(batches, table, irregular)
            diverged = divergences(nonbinding, sf.broadcast(views)).cache()
            cached.append(diverged)
            if irregular is not None:
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
                senders=senders,
                messages=table,
                groups=groups,
                irregular=irregular,
                irregular_sets=sets,
                requeued=requeued,
                counts=counts,
                diverged=diverged,
                services=services,
            )
    finally:
        for frame in cached:
            frame.unpersist()


def _counts(table: DataFrame) -> tuple[MessageCounts, ...]:
    counts = tuple(MessageCounts(**row.asDict()) for row in count_messages(table).collect())
    assert all(count.run for count in counts), "every file belongs to one of the runs"
    return counts


def _nonbinding_deliveries(batches: DataFrame, table: DataFrame, irregular: DataFrame | None) -> DataFrame:
    """The deliveries that bind nobody else, of irregular messages, if there are any, and of all others."""
    delivered = batches.where(sf.col("event") == DELIVERED)
    regular = as_messages(rows_of(delivered, table.where("nonbinding and not irregular")))
    if irregular is None:
        return regular
    return irregular.where("not binding").unionByName(regular, allowMissingColumns=True)


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
    orderer_hash = hash_of_process("run", sf.col("orderer"))
    return with_view_hash(small_table(spark, rows, _VIEWS_SCHEMA)).withColumn("orderer_hash", orderer_hash)


def _senders(spark: SparkSession, histories: Mapping[str, TraceHistory]) -> DataFrame:
    """The senders of all messages, by the hash that stands for them in the rows of batches."""
    rows = [(run, *sender) for run, history in histories.items() for sender in sorted(history.broadcasters)]
    senders = small_table(spark, rows, _SENDERS_SCHEMA)
    return senders.withColumn("sender_hash", sender_hash())


def _durations(policy: Starvation) -> tuple[int | None, int | None]:
    """The step of ageing and the period of a periodic release, where there is one."""
    ageing_ns = policy.step_ns if isinstance(policy, Ageing) else None
    release_ns = policy.period_ns if isinstance(policy, PeriodicRelease) else None
    return ageing_ns, release_ns


def bit_of(rank: int) -> tuple[int, int]:
    """The word, and the bit in it, that stands for the member with this rank in a view."""
    word, bit = divmod(rank, _RANKS_PER_WORD)
    return word, 1 << bit


def words_for(views_of: Mapping[str, Views]) -> range:
    """The words that a set of members of any view needs."""
    sizes = [len(view.members) for views in views_of.values() for view in views.values()]
    return range(1 + bit_of(max(sizes, default=1) - 1)[0])


def _binds(run: StoredRun, view: GroupView, member: Participation) -> bool:
    """Whether what a member alone delivered in a view binds the others."""
    return not member.dropped_out or not run.primary or not view.survived


def any_nonbinding(runs: Sequence[StoredRun], views_of: Mapping[str, Views]) -> bool:
    """Whether any member was in a view in which its deliveries alone bind nobody."""
    return any(
        not _binds(run, view, each)
        for run in runs
        for view in views_of[run.name].values()
        for each in view.participations
    )


def _is_bound(runs: Sequence[StoredRun], views_of: Mapping[str, Views]) -> Column:
    """Whether a row is of a run in which every delivery binds the others, and no member may have diverged."""
    bound = [
        run
        for run in runs
        if not any_nonbinding([run], views_of) and not may_diverge({run.name: views_of[run.name]})
    ]
    return is_of(bound, runs)


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
            _binds(run, view, each),
            *bit_of(rank),
        )
        for run in runs
        for view in views_of[run.name].values()
        for rank, each in enumerate(view.participations)
    ]
    known = with_view_hash(small_table(spark, rows, _PARTICIPATIONS_SCHEMA)).drop("view", "coordinator")
    return known.withColumn("process_hash", hash_of_process("run", sf.col("process")))


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
        "processes",
        sf.lit(0).cast("long"),
        lambda before, process: before.bitwiseXOR(hash_of_process("of_run", process)),
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
