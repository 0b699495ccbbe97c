"""The tables that the checks of the qualities of service read: what was sent, and what was delivered.

A message is written as `TransmissionId` writes it ("a#1/atomic/3"). A process is *orderly* if every view from
its first one on contains it, until it left by its own wish if it did. It is *correct* if it did not leave
either. The views are few, so this is found on the driver.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.core.quality import QualityKind
from priocast.core.service_promises import FIFO_KINDS
from priocast.pipeline.process_history import TraceHistory
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import StoredRun, StoredRuns, process_id, read_services
from priocast.trace.schema import DELIVERED, FINISHED, LATE, SENT

KEY = ("run", "message")
_PROCESSES_SCHEMA = (
    "run string, correct array<string>, orderly array<string>, precision_ns long, one_clock boolean"
)
_PRECISION_OPTION = "services.precision_us"
_PRECISION_US = 10_000
_COUNTED = "^[0-9]+$"


@dataclass(frozen=True)
class ServiceTables:
    """`messages` has one row for each message that was sent, `deliveries` one for each unit delivered.

    A message has its quality, by `kind`, `count`, `names` and `within_ms`, its receipt, the processes that
    delivered it (`holders`), and the correct recipients that did not reject it (`due`). Messages of one
    `order_name` are ordered among each other, those of one `lane` are in FIFO order. A delivery has the
    columns of its message, which are null if nobody sent it.
    """

    messages: DataFrame
    deliveries: DataFrame
    counts: Mapping[tuple[str, str], int]

    def count(self, run: str, kinds: Sequence[str]) -> int:
        """How many messages of these kinds of quality were sent in a run."""
        return sum(self.counts.get((run, kind), 0) for kind in kinds)


@dataclass(frozen=True)
class ServiceTrace:
    """Some runs, and what their members did with qualities of service, if anything."""

    runs: tuple[StoredRun, ...]
    services: ServiceTables | None


@contextmanager
def load_services(
    stored: StoredRuns, histories: Mapping[str, TraceHistory]
) -> Iterator[ServiceTables | None]:
    """Read the table `services` of the runs that have one; None if there is no such run."""
    used = [run for run in stored.runs if run.has_services]
    if not used:
        yield None
        return
    rows = _with_message(read_services(stored, used))
    processes = sf.broadcast(_processes(stored.spark, used, histories))
    delivered = rows.where(sf.col("event") == DELIVERED).select(
        *KEY,
        "process",
        "step",
        "time_ns",
        "unit",
        "view",
        "coordinator",
        sf.when(~sf.array_contains("reasons", LATE), sf.col("time_ns")).alias("timely_ns"),
        sf.col("quality").alias("delivered_quality"),
        sf.col("priority").alias("delivered_priority"),
    )
    messages = _messages(rows, delivered, processes).cache()
    of_message = messages.drop("view", "coordinator").withColumnsRenamed(
        {"time_ns": "sent_ns", "step": "sent_step"}
    )
    deliveries = delivered.join(of_message.drop("correct", "orderly"), list(KEY), "left").join(
        processes.select("run", "orderly"), "run"
    )
    deliveries = deliveries.cache()
    try:
        counts = messages.groupBy("run", "kind").count().collect()
        yield ServiceTables(messages, deliveries, {(row[0], row[1]): row[2] for row in counts})
    finally:
        messages.unpersist()
        deliveries.unpersist()


def _with_message(rows: DataFrame) -> DataFrame:
    sender = process_id("sender", "sender_incarnation")
    message = sf.concat_ws("/", sender, "stream", "number")
    return rows.withColumns({"sender": sender, "message": message})


def _messages(rows: DataFrame, delivered: DataFrame, processes: DataFrame) -> DataFrame:
    """One row for each message that was sent, with its receipt and with who delivered it."""
    kind = sf.substring_index("quality", ":", 1)
    detail = sf.when(sf.contains("quality", sf.lit(":")), sf.substring_index("quality", ":", -1))
    is_partial = kind.isin(QualityKind.BEST_EFFORT, QualityKind.AT_LEAST)
    sent = rows.where(sf.col("event") == SENT).select(
        *KEY,
        "sender",
        "number",
        "quality",
        "priority",
        "units",
        "recipients",
        "step",
        "time_ns",
        "view",
        "coordinator",
        kind.alias("kind"),
        sf.when(is_partial & detail.rlike(_COUNTED), detail.cast("int")).alias("count"),
        sf.when(is_partial & ~detail.rlike(_COUNTED), sf.split(detail, ",")).alias("names"),
        sf.when(kind == QualityKind.DELTA, sf.rtrim(detail, sf.lit("ms")).cast("double")).alias("within_ms"),
        _order_name(kind).alias("order_name"),
    )
    lane_priority = sf.when(sf.col("kind") == QualityKind.TIGHT, sf.col("priority")).otherwise(sf.lit(0))
    receipts = rows.where(sf.col("event") == FINISHED).select(
        *KEY, sf.lit(True).alias("finished"), "accepted", "answered", "rejected", "rounds"
    )
    holders = (
        delivered.where("unit = 0")
        .groupBy(*KEY)
        .agg(
            sf.collect_set("process").alias("holders"),
            sf.min("timely_ns").alias("first_ns"),
            sf.max("timely_ns").alias("last_ns"),
        )
    )
    return (
        sent.withColumn("lane", sf.concat_ws("/", "order_name", "sender", lane_priority))
        .join(receipts, list(KEY), "left")
        .join(holders, list(KEY), "left")
        .join(processes, "run")
        .withColumns(
            {
                "holders": sf.coalesce("holders", sf.array().cast("array<string>")),
                "rejected": sf.coalesce("rejected", sf.array().cast("array<string>")),
                "finished": sf.coalesce("finished", sf.lit(False)),
            }
        )
        .withColumn("due", sf.filter(sf.array_intersect("recipients", "correct"), _has_not_rejected))
    )


def _has_not_rejected(process: Column) -> Column:
    return ~sf.array_contains("rejected", name_of(process))


def name_of(process: Column) -> Column:
    """The name that all incarnations of a process share."""
    return sf.substring_index(process, "#", 1)


def _order_name(kind: Column) -> Column:
    """As `order_name` in `core/service_promises.py`."""
    by_kind = sf.when(kind == QualityKind.DELTA, sf.col("quality")).otherwise(kind)
    return sf.when(kind.isin(*FIFO_KINDS), sf.lit("fifo")).otherwise(by_kind)


def _processes(
    spark: SparkSession, runs: Sequence[StoredRun], histories: Mapping[str, TraceHistory]
) -> DataFrame:
    rows = []
    for run in runs:
        orderly = orderly_processes(histories[run.name])
        correct = [each for each in orderly if histories[run.name].processes[each].stop is None]
        precision_ns = int(run.manifest.options.get(_PRECISION_OPTION) or _PRECISION_US) * 1_000
        rows.append((run.name, correct, orderly, precision_ns, run.has_one_clock))
    return small_table(spark, rows, _PROCESSES_SCHEMA)


def orderly_processes(history: TraceHistory) -> list[str]:
    """The processes that did not fail or drop out, those that left by their own wish included."""
    views = {each.view: each.members for process in history.processes.values() for each in process.views}
    found = []
    for process in history.processes.values():
        if not process.views or (process.stop is not None and not process.stop.voluntary):
            continue
        first, last = process.views[0].view.number, process.views[-1].view.number
        meant = [
            members
            for view, members in views.items()
            if view.number >= first and (process.stop is None or view.number <= last)
        ]
        if all(process.id in members for members in meant):
            found.append(process.id)
    return sorted(found)
