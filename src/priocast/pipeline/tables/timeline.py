"""What each process did over time, in slices: how many messages it delivered and how many waited there."""

from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.pipeline.membership import remaining_processes
from priocast.pipeline.process_history import RecordedProcess
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.tables.run_time import is_founder, start_times
from priocast.pipeline.trace_tables import TraceTables
from priocast.trace.schema import DELIVERED

_NO_ORDERER = ""
_SLICES = 60
_NS = 1_000_000_000


@dataclass(frozen=True)
class Timeline:
    """One process in one run, with a value for each slice of `slice_s` seconds.

    `decides` says whether it was ever the orderer, or in a view without a single orderer; `present` whether
    it was in the group for the whole slice. `rate` is in messages per second, from its first to its last
    delivery.
    """

    run: str
    process: str
    decides: bool
    slice_s: float
    delivered: tuple[int, ...]
    waiting: tuple[int, ...]
    present: tuple[bool, ...]
    rate: float


@dataclass(frozen=True)
class _Scale:
    run: str
    process: str
    origin_ns: int
    slice_ns: int

    def slice_of(self, time_ns: int) -> int:
        return max(0, (time_ns - self.origin_ns) // self.slice_ns)


def timelines(trace: TraceTables) -> list[Timeline]:
    """Every process of every run, by name."""
    scales = [scale for run in trace.runs for scale in _scales(run, trace)]
    slices: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in count_in_slices(trace.batches, scales).collect():
        slices[row["run"], row["process"]].append(row)
    return [_timeline(trace, scale, slices[scale.run, scale.process]) for scale in scales]


def count_in_slices(batches: DataFrame, scales: list[_Scale]) -> DataFrame:
    """How many messages each process delivered in each slice, and the maximum that waited there."""
    spark = batches.sparkSession
    schema = "run string, process string, origin_ns long, slice_ns long"
    known = small_table(spark, [(s.run, s.process, s.origin_ns, s.slice_ns) for s in scales], schema)
    delivered = sf.when(sf.col("event") == DELIVERED, sf.col("count")).otherwise(0)
    return (
        batches.join(sf.broadcast(known), ["run", "process"])
        .withColumn("slice", sf.greatest(sf.expr("(time_ns - origin_ns) div slice_ns"), sf.lit(0)))
        .groupBy("run", "process", "slice")
        .agg(sf.sum(delivered).alias("delivered"), sf.max("backlog").alias("waiting"))
    )


def _scales(run: StoredRun, trace: TraceTables) -> list[_Scale]:
    """Where the slices of each process start, and how long they are; the length is the same within a run."""
    history = trace.histories[run.name]
    started = start_times(run, history)
    longest = max(process.last_ns - started[process.id] for process in history.processes.values())
    slice_ns = longest // _SLICES + 1
    return [_Scale(run.name, process, started[process], slice_ns) for process in sorted(history.processes)]


def _timeline(trace: TraceTables, scale: _Scale, slices: list[Row]) -> Timeline:
    delivered, waiting = [0] * _SLICES, [0] * _SLICES
    for row in slices:
        delivered[row["slice"]] = row["delivered"]
        waiting[row["slice"]] = row["waiting"]
    process = trace.histories[scale.run].processes[scale.process]
    spans = process.delivered.values()
    first_ns = min((span.first_ns for span in spans), default=0)
    seconds = (max((span.last_ns for span in spans), default=0) - first_ns) / _NS
    return Timeline(
        run=scale.run,
        process=scale.process,
        decides=any(event.orderer in (scale.process, _NO_ORDERER) for event in process.views),
        slice_s=scale.slice_ns / _NS,
        delivered=tuple(delivered),
        waiting=tuple(waiting),
        present=_presence(trace, scale, process),
        rate=sum(span.count for span in spans) / seconds if seconds else 0.0,
    )


def _presence(trace: TraceTables, scale: _Scale, process: RecordedProcess) -> tuple[bool, ...]:
    """A founder is present from the start, a process that remained in a final view until the end."""
    remained = process.id in remaining_processes(trace.views_of[scale.run])
    founded = is_founder(process, trace.histories[scale.run])
    first = 0 if founded else scale.slice_of(process.views[0].time_ns) + 1
    end = _SLICES if remained else scale.slice_of(process.last_ns)
    return tuple(first <= index < end for index in range(_SLICES))
