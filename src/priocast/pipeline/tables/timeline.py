"""What each process did over time, in slices: how many messages it delivered and how many waited there.

Where the members' clocks can be compared, the slices of a run start together; otherwise each process's start
at its own first event.
"""

from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.pipeline.evidence import Evidence
from priocast.trace.schema import DELIVERED

_SLICES = 60
_LOCAL = "local"
_NS = 1_000_000_000


@dataclass(frozen=True)
class Timeline:
    """One process in one run, a value for each slice of `slice_s` seconds.

    `rate` is in messages per second, from its first to its last delivery.
    """

    run: str
    process: str
    is_orderer: bool
    slice_s: float
    delivered: tuple[int, ...]
    waiting: tuple[int, ...]
    rate: float


@dataclass(frozen=True)
class _Span:
    run: str
    process: str
    origin_ns: int
    slice_ns: int


def timelines(evidence: Evidence) -> list[Timeline]:
    """Every process of every run, by name."""
    totals = sum_up(evidence.events).orderBy("run", "process").collect()
    local = {run.name: run.manifest.clock == _LOCAL for run in evidence.runs}
    spans = _spans(totals, local)
    rows = cut_in_slices(evidence.events, spans).collect()
    slices: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        slices[row["run"], row["process"]].append(row)
    return [
        _timeline(total, span, slices[span.run, span.process])
        for total, span in zip(totals, spans, strict=True)
    ]


def sum_up(events: DataFrame) -> DataFrame:
    """When each process began and ended, and how much it delivered from when to when."""
    delivery_ns = sf.when(sf.col("event") == DELIVERED, sf.col("time_ns"))
    return events.groupBy("run", "process").agg(
        sf.max("at_orderer").alias("is_orderer"),
        sf.min("time_ns").alias("start_ns"),
        sf.max("time_ns").alias("end_ns"),
        sf.min(delivery_ns).alias("first_delivery_ns"),
        sf.max(delivery_ns).alias("last_delivery_ns"),
        sf.sum(sf.when(sf.col("event") == DELIVERED, sf.col("count")).otherwise(0)).alias("deliveries"),
    )


def cut_in_slices(events: DataFrame, spans: list[_Span]) -> DataFrame:
    """How many messages each process delivered in each slice, and the most that waited there."""
    spark = events.sparkSession
    schema = "run string, process string, origin_ns long, slice_ns long"
    cuts = spark.createDataFrame([(s.run, s.process, s.origin_ns, s.slice_ns) for s in spans], schema)
    delivered = sf.when(sf.col("event") == DELIVERED, sf.col("count")).otherwise(0)
    return (
        events.join(sf.broadcast(cuts), ["run", "process"])
        .withColumn("slice", sf.expr("(time_ns - origin_ns) div slice_ns"))
        .groupBy("run", "process", "slice")
        .agg(sf.sum(delivered).alias("delivered"), sf.max("backlog").alias("waiting"))
    )


def _spans(totals: list[Row], local: dict[str, bool]) -> list[_Span]:
    """Where the slices of each process begin, and how long they are: alike within a run."""
    of_run: dict[str, list[Row]] = defaultdict(list)
    for total in totals:
        of_run[total["run"]].append(total)
    spans = []
    for run, processes in of_run.items():
        together = min(process["start_ns"] for process in processes)
        origins = [process["start_ns"] if local[run] else together for process in processes]
        longest = max(process["end_ns"] - origin for process, origin in zip(processes, origins, strict=True))
        slice_ns = longest // _SLICES + 1
        spans += [
            _Span(run, process["process"], origin, slice_ns)
            for process, origin in zip(processes, origins, strict=True)
        ]
    return spans


def _timeline(total: Row, span: _Span, slices: list[Row]) -> Timeline:
    delivered, waiting = [0] * _SLICES, [0] * _SLICES
    for row in slices:
        delivered[row["slice"]] = row["delivered"]
        waiting[row["slice"]] = row["waiting"]
    seconds = ((total["last_delivery_ns"] or 0) - (total["first_delivery_ns"] or 0)) / _NS
    return Timeline(
        run=span.run,
        process=span.process,
        is_orderer=total["is_orderer"],
        slice_s=span.slice_ns / _NS,
        delivered=tuple(delivered),
        waiting=tuple(waiting),
        rate=total["deliveries"] / seconds if seconds else 0.0,
    )
