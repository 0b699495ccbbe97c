"""Delivery times by sender, at the other members, and rates of sending and delivering over time.

The adaptive paper's measures: how long a message takes until another member delivers it, and how evenly the
messages of one sender are delivered. The clocks of the members must be comparable. Messages with a quality of
service count as well.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import StoredRun, messages, process_id, read_services
from priocast.pipeline.trace_tables import TraceTables
from priocast.trace.schema import BROADCAST, DELIVERED, SENT, SETTLED_LABEL

_TICKS_PER_SECOND = 10
_KEY = ("run", "sender", "stream", "number")


@dataclass(frozen=True)
class SenderTime:
    """How long one sender's messages took until the other members delivered them.

    `settled` says which messages: those that were sent while the load was settled, or those before.
    """

    run: str
    sender: str
    settled: bool
    messages: int
    mean_ms: float
    variance_ms2: float
    median_ms: float
    p99_ms: float


@dataclass(frozen=True)
class SenderRate:
    """How many messages a sender sent, and one other member delivered, in each tenth of a second."""

    run: str
    sender: str
    settled_s: float
    sent: tuple[int, ...]
    delivered: tuple[int, ...]


def sender_times(trace: TraceTables) -> list[SenderTime]:
    """Every sender of every run that is measured by sender; a row without a sender is for all of them."""
    deliveries = deliveries_at_others(trace)
    if deliveries is None:
        return []
    took_ms = (sf.col("delivered_ns") - sf.col("sent_ns")) / 1_000_000
    settled = sf.col("sent_s") >= sf.col("settled_s")
    measured = (
        deliveries.where("sent_s < end_s").withColumn("took_ms", took_ms).withColumn("settled", settled)
    )
    rows = (
        measured.rollup("run", "settled", "sender")
        .agg(
            sf.countDistinct("sender", "stream", "number").alias("messages"),
            sf.mean("took_ms").alias("mean_ms"),
            sf.var_pop("took_ms").alias("variance_ms2"),
            sf.percentile("took_ms", sf.lit(0.5)).alias("median_ms"),
            sf.percentile("took_ms", sf.lit(0.99)).alias("p99_ms"),
            sf.grouping_id().alias("level"),
        )
        .where("level <= 1")
        .orderBy("run", "settled", "sender")
        .collect()
    )
    return [_time(row) for row in rows]


def sender_rates(trace: TraceTables) -> list[SenderRate]:
    """What was sent and delivered in each tenth of a second, at the first member that is not the sender."""
    deliveries = deliveries_at_others(trace)
    if deliveries is None:
        return []
    first = deliveries.groupBy("run", "sender").agg(sf.min("process").alias("process"))
    seen = deliveries.join(sf.broadcast(first), ["run", "sender", "process"])
    tick = sf.floor(_TICKS_PER_SECOND * sf.col("second")).cast("int").alias("tick")
    sent = seen.withColumn("second", sf.col("sent_s"))
    delivered = seen.withColumn("second", sf.col("delivered_s"))
    counted = {
        name: {
            (row["run"], row["sender"], row["tick"]): row["count"]
            for row in frame.groupBy("run", "sender", tick).count().collect()
        }
        for name, frame in (("sent", sent), ("delivered", delivered))
    }
    settled_s = {run.name: _settled(run)[0] for run in trace.runs if SETTLED_LABEL in run.manifest.labels}
    return [
        SenderRate(
            run,
            sender,
            settled_s[run],
            _series(counted["sent"], run, sender, ticks),
            _series(counted["delivered"], run, sender, ticks),
        )
        for run, sender, ticks in _lengths(counted)
    ]


def deliveries_at_others(trace: TraceTables) -> DataFrame | None:
    """One row for each delivery at a member that is not the sender; seconds count from the first message."""
    runs = [run for run in trace.runs if SETTLED_LABEL in run.manifest.labels]
    if not runs:
        return None
    spark = trace.spark
    known = small_table(
        spark, [(run.name, *_settled(run)) for run in runs], "run string, settled_s double, end_s double"
    )
    events = _ordered(trace)
    if with_services := [run for run in runs if run.has_services]:
        events = events.unionByName(_with_quality(trace, with_services))
    events = events.join(sf.broadcast(known), "run")
    sent = events.where("is_sent").select(*_KEY, sf.col("time_ns").alias("sent_ns"), "settled_s", "end_s")
    start = sent.groupBy("run").agg(sf.min("sent_ns").alias("start_ns"))
    delivered = events.where("not is_sent and process != sender").select(
        *_KEY, "process", sf.col("time_ns").alias("delivered_ns")
    )
    return (
        sent.join(delivered, list(_KEY))
        .join(sf.broadcast(start), "run")
        .withColumns(
            {
                "sent_s": (sf.col("sent_ns") - sf.col("start_ns")) / 1e9,
                "delivered_s": (sf.col("delivered_ns") - sf.col("start_ns")) / 1e9,
            }
        )
    )


def _ordered(trace: TraceTables) -> DataFrame:
    """Broadcasts and deliveries of ordered messages; a sender is a process."""
    rows = messages(trace.batches.where(sf.col("event").isin(BROADCAST, DELIVERED)))
    return rows.select(
        "run",
        process_id("sender", "sender_incarnation").alias("sender"),
        sf.col("level").cast("string").alias("stream"),
        "number",
        "process",
        "time_ns",
        (sf.col("event") == BROADCAST).alias("is_sent"),
    )


def _with_quality(trace: TraceTables, runs: list[StoredRun]) -> DataFrame:
    """The same of messages with a quality of service."""
    rows = read_services(trace.stored, runs).where(sf.col("event").isin(SENT, DELIVERED))
    return rows.select(
        "run",
        process_id("sender", "sender_incarnation").alias("sender"),
        "stream",
        "number",
        process_id("member", "incarnation").alias("process"),
        "time_ns",
        (sf.col("event") == SENT).alias("is_sent"),
    )


def _settled(run: StoredRun) -> tuple[float, float]:
    begin, _, end = run.manifest.labels[SETTLED_LABEL].partition(":")
    return float(begin), float(end)


def _time(row: Row) -> SenderTime:
    return SenderTime(
        run=row["run"],
        sender=row["sender"] or "",
        settled=row["settled"],
        messages=row["messages"],
        mean_ms=row["mean_ms"],
        variance_ms2=row["variance_ms2"],
        median_ms=row["median_ms"],
        p99_ms=row["p99_ms"],
    )


def _lengths(counted: dict[str, dict[tuple[str, str, int], int]]) -> list[tuple[str, str, int]]:
    """Every run and sender, with the number of ticks until the last event of its run."""
    last: dict[str, int] = {}
    pairs: dict[tuple[str, str], None] = {}
    for of_event in counted.values():
        for run, sender, tick in sorted(of_event):
            last[run] = max(last.get(run, 0), tick)
            pairs[run, sender] = None
    return [(run, sender, last[run] + 1) for run, sender in sorted(pairs)]


def _series(counts: dict[tuple[str, str, int], int], run: str, sender: str, ticks: int) -> tuple[int, ...]:
    return tuple(counts.get((run, sender, tick), 0) for tick in range(ticks))
