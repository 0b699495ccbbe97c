"""What the checks and tables look at: the events, the views, and a ledger with one row for each message.

Only messages that look odd in the ledger are looked up again, delivery by delivery, to say who did what and
where; of a good run, hardly any.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from priocast.core.starvation import Ageing, PeriodicRelease, Starvation
from priocast.pipeline.chronicle import Chronicle, ViewName, read_chronicles
from priocast.pipeline.ledger import (
    Census,
    count_messages,
    enters_queue,
    leaves_queue,
    ledger,
    mark,
    queue_rows,
)
from priocast.pipeline.membership import FELL_OUT, GroupView, audiences, lost_processes, survey
from priocast.pipeline.sources import (
    MESSAGE_KEY,
    STREAM_KEY,
    Run,
    as_messages,
    explode_batches,
    messages,
    read_events,
)
from priocast.trace.schema import BROADCAST, DELIVERED

Views = Mapping[ViewName, GroupView]

_VIEWS_SCHEMA = """run string, view long, coordinator string, members array<string>, orderer string,
    first_position long, gapless boolean, orders_by_rank boolean, sends_by_rank boolean, ageing_ns long,
    flush_ns long"""
_STAYS_SCHEMA = """run string, view long, coordinator string, process string, name string, onward string,
    owes_from long, owes_until long, final boolean, binds boolean"""
_AUDIENCES_SCHEMA = """of_run string, view long, coordinator string, to string, start long, end long,
    processes array<string>, bound boolean, complete boolean"""


@dataclass(frozen=True)
class Evidence:
    """One or several runs, ready to be judged.

    `views` and `stays` (which member was in which view, and where it went on to) are small, and sent to where
    the messages are. `odd` has every delivery of the messages that the ledger marks as odd, `requeued` every
    queue in which those were that were in several; if there are any.
    """

    runs: tuple[Run, ...]
    chronicles: Mapping[str, Chronicle]
    views_of: Mapping[str, Views]
    events: DataFrame
    views: DataFrame
    stays: DataFrame
    ledger: DataFrame
    odd: DataFrame | None
    requeued: DataFrame | None
    census: tuple[Census, ...]

    @property
    def spark(self) -> SparkSession:
        return self.events.sparkSession

    @property
    def priorities(self) -> tuple[int, ...]:
        """The priorities in use, in any of the runs."""
        return tuple(sorted({counted.priority for counted in self.census}))

    @property
    def deliveries(self) -> DataFrame:
        """One row for each message that each process delivered."""
        return messages(self.events.where(sf.col("event") == DELIVERED))

    def deliveries_of(self, few: DataFrame) -> DataFrame:
        """Every delivery of a few messages."""
        return as_messages(rows_of(self.events.where(sf.col("event") == DELIVERED), few))

    def without_place(self) -> DataFrame:
        """The messages that need not have a place in the order: withheld ones, and those that bind nobody.

        `special` are those that were not for all, or on behalf of a client: others may pass them over.
        """
        found = self.ledger.where("withheld or (unbound and not odd)").select(*MESSAGE_KEY, "special")
        if self.odd is None:
            return found
        bound = self.odd.groupBy(*MESSAGE_KEY).agg(sf.max("binding").alias("binding")).where("not binding")
        special = self.ledger.where("odd").select(*MESSAGE_KEY, "special")
        return found.unionByName(bound.join(special, list(MESSAGE_KEY)).select(*MESSAGE_KEY, "special"))

    def any(self, mark: str) -> bool:
        """Whether the ledger marks any message so."""
        return any(getattr(counted, mark) for counted in self.census)

    def lost_processes(self, run: Run) -> set[str]:
        """Processes of a run whose record may lack its end."""
        if run.loses_nothing:
            return set()
        return lost_processes(self.chronicles[run.name], self.views_of[run.name])


@contextmanager
def gather(spark: SparkSession, runs: Sequence[Run]) -> Iterator[Evidence]:
    """Read the runs and keep what every check needs in memory until the end of the block."""
    events = read_events(spark, runs)
    chronicles = read_chronicles(events, [run.name for run in runs])
    views_of = {run.name: survey(chronicles[run.name], run.primary) for run in runs}
    views = _views(spark, views_of).cache()
    stays = _stays(spark, runs, views_of)
    accounts = mark(
        ledger(events, views), sf.broadcast(_audiences(spark, runs, views_of, chronicles))
    ).cache()
    kept = [views, accounts]
    try:
        census = tuple(Census(**row.asDict()) for row in count_messages(accounts).collect())
        assert all(counted.run for counted in census), "every file is of one of the runs"
        odd = requeued = None
        if any(counted.odd for counted in census):
            odd = odd_deliveries(events, accounts, sf.broadcast(stays)).cache()
            kept.append(odd)
        if any(counted.requeued for counted in census):
            requeued = requeued_messages(events, sf.broadcast(views), accounts).cache()
            kept.append(requeued)
        yield Evidence(
            runs=tuple(runs),
            chronicles=chronicles,
            views_of=views_of,
            events=events,
            views=sf.broadcast(views),
            stays=sf.broadcast(stays),
            ledger=accounts,
            odd=odd,
            requeued=requeued,
            census=census,
        )
    finally:
        for frame in kept:
            frame.unpersist()


def rows_of(events: DataFrame, few: DataFrame) -> DataFrame:
    """The exploded rows of a few messages: batches that cannot hold one of them are not opened."""
    numbers = few.groupBy(*STREAM_KEY).agg(
        sf.min("number").alias("lowest"), sf.max("number").alias("highest")
    )
    may_hold = (sf.col("first") <= sf.col("highest")) & (sf.col("first") + sf.col("count") > sf.col("lowest"))
    batches = events.join(sf.broadcast(numbers), list(STREAM_KEY)).where(may_hold).drop("lowest", "highest")
    return explode_batches(batches).join(
        sf.broadcast(few.select(*MESSAGE_KEY)), list(MESSAGE_KEY), "left_semi"
    )


def odd_deliveries(events: DataFrame, ledger: DataFrame, stays: DataFrame) -> DataFrame:
    """Every delivery of the odd messages; `to` is whom the sender asked for, if it is known.

    `binding` is false where, in a primary group, only those delivered a message in a view who fell out of it,
    and the message is not safe.
    """
    known = events.where(sf.col("event").isin(BROADCAST, DELIVERED))
    rows = rows_of(known, ledger.where("odd"))
    is_broadcast = sf.col("event") == BROADCAST
    asked = rows.groupBy(*MESSAGE_KEY).agg(
        sf.coalesce(sf.max(sf.when(is_broadcast, sf.col("to"))), sf.max("to")).alias("to"),
        sf.max("safe").alias("safe"),
    )
    in_view = Window.partitionBy(*MESSAGE_KEY, "view_print")
    went_on = stays.select("run", "view_print", "process", "binds")
    return (
        rows.where(sf.col("event") == DELIVERED)
        .select(
            *MESSAGE_KEY,
            "process",
            sf.col("member").alias("name"),
            "view",
            "coordinator",
            "view_print",
            "step",
            (sf.col("position") + sf.col("index")).alias("position"),
        )
        .join(asked, list(MESSAGE_KEY))
        .join(went_on, ["run", "view_print", "process"], "left")
        .withColumn("binding", sf.col("safe") | sf.max(sf.coalesce("binds", sf.lit(True))).over(in_view))
        .drop("binds")
    )


def requeued_messages(events: DataFrame, views: DataFrame, ledger: DataFrame) -> DataFrame:
    """The messages that were in several queues: one row for each queue, as the ledger has for the others."""
    again = ledger.where("requeued")
    enters, leaves = enters_queue(), leaves_queue()
    return (
        rows_of(queue_rows(events, views, enters | leaves), again)
        .groupBy(*MESSAGE_KEY, sf.col("view_print").alias("queue_print"))
        .agg(
            sf.max("priority").alias("priority"),
            sf.min(sf.when(enters, sf.col("rank"))).alias("rank"),
            sf.min(sf.when(enters, sf.col("step"))).alias("enter_step"),
            sf.min(sf.when(leaves, sf.col("step"))).alias("leave_step"),
            sf.min(sf.when(leaves, sf.col("position") + sf.col("index"))).alias("leave_position"),
        )
        .join(sf.broadcast(again.select(*MESSAGE_KEY, "view_print", "view_print_last")), list(MESSAGE_KEY))
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
            view.orders_by_rank,
            view.sends_by_rank,
            *_durations(view.order.starvation),
        )
        for run, views in views_of.items()
        for view in views.values()
    ]
    return _with_print(spark.createDataFrame(rows, _VIEWS_SCHEMA))


def _durations(policy: Starvation) -> tuple[int | None, int | None]:
    """The step of ageing and the period of a flush, where there is one."""
    ageing_ns = policy.step_ns if isinstance(policy, Ageing) else None
    flush_ns = policy.period_ns if isinstance(policy, PeriodicRelease) else None
    return ageing_ns, flush_ns


def _stays(spark: SparkSession, runs: Sequence[Run], views_of: Mapping[str, Views]) -> DataFrame:
    rows = [
        (
            run.name,
            *view.name,
            stay.process,
            stay.name,
            stay.onward,
            stay.owes_from,
            stay.owes_until,
            view.final,
            stay.onward != FELL_OUT or not run.primary or not view.survived,
        )
        for run in runs
        for view in views_of[run.name].values()
        for stay in view.stays
    ]
    return _with_print(spark.createDataFrame(rows, _STAYS_SCHEMA)).drop("view", "coordinator")


def _audiences(
    spark: SparkSession,
    runs: Sequence[Run],
    views_of: Mapping[str, Views],
    chronicles: Mapping[str, Chronicle],
) -> DataFrame:
    rows = [
        (
            run.name,
            *view.name,
            heard.to,
            heard.start,
            heard.end,
            heard.processes,
            heard.binding or not run.primary,
            heard.complete or not run.primary,
        )
        for run in runs
        for view in views_of[run.name].values()
        for heard in audiences(view, chronicles[run.name].addressed)
    ]
    due_print = sf.aggregate(
        "processes", sf.lit(0).cast("long"), lambda before, process: before.bitwiseXOR(sf.xxhash64(process))
    )
    return spark.createDataFrame(rows, _AUDIENCES_SCHEMA).select(
        "of_run",
        "view",
        "start",
        "end",
        "processes",
        "bound",
        "complete",
        sf.xxhash64("view", "coordinator").alias("of_view"),
        sf.xxhash64("to").alias("of_to"),
        due_print.alias("due_print"),
    )


def _with_print(named: DataFrame) -> DataFrame:
    return named.withColumn("view_print", sf.xxhash64("view", "coordinator"))
