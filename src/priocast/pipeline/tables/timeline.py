"""What each process did over time, in slices: how many messages it delivered and how many waited there."""

from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.pipeline.chronicle import Life
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.membership import stayers
from priocast.pipeline.sources import Run
from priocast.pipeline.tables.run_time import beginnings, is_founder
from priocast.trace.schema import DELIVERED

_NOBODY = ""
_SLICES = 60
_NS = 1_000_000_000


@dataclass(frozen=True)
class Timeline:
    """One process in one run, a value for each slice of `slice_s` seconds.

    `decides` says whether it ever ordered alone, or was in a view in which nobody alone does; `present`
    whether it was in the group for the whole of a slice; `rate` is in messages per second, from its first to
    its last delivery.
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


def timelines(evidence: Evidence) -> list[Timeline]:
    """Every process of every run, by name."""
    scales = [scale for run in evidence.runs for scale in _scales(run, evidence)]
    slices: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in cut_in_slices(evidence.events, scales).collect():
        slices[row["run"], row["process"]].append(row)
    return [_timeline(evidence, scale, slices[scale.run, scale.process]) for scale in scales]


def cut_in_slices(events: DataFrame, scales: list[_Scale]) -> DataFrame:
    """How many messages each process delivered in each slice, and the most that waited there."""
    spark = events.sparkSession
    schema = "run string, process string, origin_ns long, slice_ns long"
    cuts = spark.createDataFrame([(s.run, s.process, s.origin_ns, s.slice_ns) for s in scales], schema)
    delivered = sf.when(sf.col("event") == DELIVERED, sf.col("count")).otherwise(0)
    return (
        events.join(sf.broadcast(cuts), ["run", "process"])
        .withColumn("slice", sf.greatest(sf.expr("(time_ns - origin_ns) div slice_ns"), sf.lit(0)))
        .groupBy("run", "process", "slice")
        .agg(sf.sum(delivered).alias("delivered"), sf.max("backlog").alias("waiting"))
    )


def _scales(run: Run, evidence: Evidence) -> list[_Scale]:
    """Where the slices of each process begin, and how long they are: alike within a run."""
    chronicle = evidence.chronicles[run.name]
    began = beginnings(run, chronicle)
    longest = max(life.last_ns - began[process] for process, life in chronicle.lives.items())
    slice_ns = longest // _SLICES + 1
    return [_Scale(run.name, process, began[process], slice_ns) for process in sorted(chronicle.lives)]


def _timeline(evidence: Evidence, scale: _Scale, slices: list[Row]) -> Timeline:
    delivered, waiting = [0] * _SLICES, [0] * _SLICES
    for row in slices:
        delivered[row["slice"]] = row["delivered"]
        waiting[row["slice"]] = row["waiting"]
    life = evidence.chronicles[scale.run].lives[scale.process]
    spans = life.delivered.values()
    first_ns = min((span.first_ns for span in spans), default=0)
    seconds = (max((span.last_ns for span in spans), default=0) - first_ns) / _NS
    return Timeline(
        run=scale.run,
        process=scale.process,
        decides=any(telling.orderer in (scale.process, _NOBODY) for telling in life.told),
        slice_s=scale.slice_ns / _NS,
        delivered=tuple(delivered),
        waiting=tuple(waiting),
        present=_presence(evidence, scale, life),
        rate=sum(span.count for span in spans) / seconds if seconds else 0.0,
    )


def _presence(evidence: Evidence, scale: _Scale, life: Life) -> tuple[bool, ...]:
    """A founder is there from the beginning on, who stayed in a final view until the end."""
    stayed = life.process in stayers(evidence.views_of[scale.run])
    came = 0 if is_founder(life, evidence.chronicles[scale.run]) else scale.slice_of(life.told[0].time_ns) + 1
    went = _SLICES if stayed else scale.slice_of(life.last_ns)
    return tuple(came <= place < went for place in range(_SLICES))
