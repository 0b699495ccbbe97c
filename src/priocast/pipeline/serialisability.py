"""Strict serialisability of a history, on Spark: the witness order is replayed and compared with real time.

The witness is the order in which the system says it executed the transactions. The history is strictly
serialisable if that order explains it:

1. No two commands have the same place.
2. Every read returned what the transactions before it in the order had written, and every transfer was made
   or rejected rightly. Each key is replayed by itself, in the order, in a partition that has it whole.
3. A transaction that was answered before another was invoked precedes it. For each invocation the highest
   place that was answered before is a running maximum over the history: no pairs are compared.

A transaction with an unknown outcome was executed where the witness says so, or not at all. It was never
answered, so nothing must follow it; but it must follow what was answered before it was invoked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as sf

from priocast.core.errors import UnreadableTrace
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.session import LOCAL, plan_for, spark_session
from priocast.pipeline.transaction_tables import read_events, transactions
from priocast.pipeline.witness_replay import FoundAnomaly, ReplayedStep, replay
from priocast.trace.transaction_history import FAIL, INFO, OK

REAL_TIME = "real time"
SAME_PLACE = "same place"
EXAMPLES_MAX = 10
#: Events that one task goes through in order. The running maximum of a history is that of its parts, after
#: the maximum of all parts before.
_PART_EVENTS = 1 << 16
_ANOMALIES_SCHEMA = "kind string, rank long, process long, invoked long, summary string"


@dataclass(frozen=True)
class HistoryVerdict:
    """Whether a history is strictly serialisable, with the first anomalies and the number of each kind.

    `unknown` transactions were not answered; `unknown_executed` of them were executed. `steps` is how many
    reads and writes were replayed.
    """

    transactions: int
    answered: int
    failed: int
    unknown: int
    unknown_executed: int
    steps: int
    anomalies: dict[str, int]
    examples: tuple[FoundAnomaly, ...]

    @property
    def holds(self) -> bool:
        """Whether there is no anomaly."""
        return not self.anomalies


def judge_history(
    path: Path,
    master: str = LOCAL,
    examples_max: int = EXAMPLES_MAX,
    progress: Progress = ignore_progress,
) -> HistoryVerdict:
    """Judge the history in a file; `UnreadableTrace` if it is none, or has no witness."""
    with spark_session(master) as spark:
        progress("reading the history")
        events = read_events(spark, path).persist()
        try:
            plan_for(spark, _check_events(events, path))
            return _judge(events, path, examples_max, progress)
        finally:
            events.unpersist()


def _check_events(events: DataFrame, path: Path) -> int:
    """How many events there are; `UnreadableTrace` if a line is none, or two have the same index."""
    row = events.agg(
        sf.count("index").alias("count"),
        sf.count_distinct("index").alias("distinct"),
        sf.min("error").alias("error"),
    ).first()
    assert row is not None
    if row["error"] is not None:
        raise UnreadableTrace(f"{path}: {row['error']}")
    if row["distinct"] != row["count"] or not row["count"]:
        raise UnreadableTrace(f"{path}: the history is empty, or two events have the same :index")
    return int(row["count"])


def _judge(events: DataFrame, path: Path, examples_max: int, progress: Progress) -> HistoryVerdict:
    history = transactions(events).persist()
    try:
        counts = _counts(history, path)
        progress("replaying the order")
        placed = history.where("rank is not null")
        checks = (contradicting_real_time, at_one_place, replayed)
        found = reduce(DataFrame.unionByName, (check(placed) for check in checks)).collect()
    finally:
        history.unpersist()
    found.sort(key=lambda row: (row["rank"], row["kind"], row["summary"]))
    return HistoryVerdict(
        **counts,
        anomalies=dict(sorted(Counter(row["kind"] for row in found).items())),
        examples=tuple(FoundAnomaly(*row) for row in found[:examples_max]),
    )


def _counts(history: DataFrame, path: Path) -> dict[str, int]:
    """How many transactions there are of each outcome; `UnreadableTrace` if one cannot be judged."""
    unknown = sf.col("outcome") == INFO
    executed = sf.when(sf.col("rank").isNotNull(), sf.size("steps")).otherwise(0)
    problem = sf.when(sf.col("problem").isNotNull(), sf.struct("invoked", "process", "problem"))
    row = history.agg(
        sf.min(problem).alias("problem"),
        sf.count(sf.lit(1)).alias("transactions"),
        sf.count_if(sf.col("outcome") == OK).alias("answered"),
        sf.count_if(sf.col("outcome") == FAIL).alias("failed"),
        sf.count_if(unknown).alias("unknown"),
        sf.count_if(unknown & sf.col("rank").isNotNull()).alias("unknown_executed"),
        sf.coalesce(sf.sum(executed), sf.lit(0)).alias("steps"),
    ).first()
    assert row is not None
    counts = row.asDict()
    if (wrong := counts.pop("problem")) is not None:
        which = f"process {wrong['process']} at :index {wrong['invoked']}"
        raise UnreadableTrace(f"{path}: the transaction of {which} {wrong['problem']}")
    return counts


def contradicting_real_time(placed: DataFrame) -> DataFrame:
    """Transactions that precede, in the order, one that was answered before they were invoked."""
    answer = sf.struct("rank", "process", "invoked")
    nothing = sf.lit(None).cast("struct<rank: long, process: long, invoked: long>")
    own = ["rank", "process", "invoked"]
    answers = placed.where("answered is not null").select(
        sf.col("answered").alias("at"), answer.alias("answer"), *own
    )
    invocations = placed.select(sf.col("invoked").alias("at"), nothing.alias("answer"), *own)
    rows = answers.unionByName(invocations).withColumn("part", sf.floor(sf.col("at") / _PART_EVENTS))
    in_order = Window.orderBy("part").rowsBetween(Window.unboundedPreceding, -1)
    parts = rows.groupBy("part").agg(sf.max("answer").alias("highest"))
    parts = parts.select("part", sf.max("highest").over(in_order).alias("of_parts"))
    in_part = Window.partitionBy("part").orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    running = rows.withColumn("of_part", sf.max("answer").over(in_part)).join(sf.broadcast(parts), "part")
    highest = sf.greatest("of_part", "of_parts")
    late = running.where("answer is null").withColumn("highest", highest).where("highest.rank > rank")
    summary = sf.format_string(
        "executed at %d, but process %d had been answered for %d before this was invoked",
        _position("rank"),
        sf.col("highest.process"),
        _position("highest.rank"),
    )
    return _anomalies(late, REAL_TIME, summary)


def at_one_place(placed: DataFrame) -> DataFrame:
    """Commands that share their place with another one."""
    commands = placed.where("rank % 2 = 0")
    shared = commands.groupBy("rank").agg(
        sf.count(sf.lit(1)).alias("count"),
        sf.min(sf.struct("process", "invoked")).alias("first"),
    )
    shared = shared.where("count > 1").select("rank", "count", "first.process", "first.invoked")
    return _anomalies(
        shared, SAME_PLACE, sf.format_string("%d transactions at %d", "count", _position("rank"))
    )


def replayed(placed: DataFrame) -> DataFrame:
    """Steps whose result differs from that of the replay."""
    steps = placed.select("rank", "process", "invoked", sf.posexplode("steps").alias("step", "of"))
    rows = steps.select(
        "of.key", "rank", "step", "of.kind", "of.values", "process", "invoked"
    )  # the fields of a ReplayedStep
    sorted_rows = rows.repartition("key").sortWithinPartitions("key", "rank", "step")
    return placed.sparkSession.createDataFrame(sorted_rows.rdd.mapPartitions(_replay), _ANOMALIES_SCHEMA)


def _replay(rows: Iterable[Row]) -> Iterator[FoundAnomaly]:
    return replay(ReplayedStep(*row) for row in rows)


def _anomalies(rows: DataFrame, kind: str, summary: Column) -> DataFrame:
    return rows.select(sf.lit(kind).alias("kind"), "rank", "process", "invoked", summary.alias("summary"))


def _position(rank: str) -> Column:
    return sf.floor(sf.col(rank) / 2)
