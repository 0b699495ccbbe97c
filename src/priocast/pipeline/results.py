"""The results of the pipeline: plain values, for the command line, the demo and the report."""

from dataclasses import dataclass
from pathlib import Path

from priocast.pipeline.message_table import MessageCounts
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.tables.delivery_time import DeliveryTime
from priocast.pipeline.tables.inversions import Inversions
from priocast.pipeline.tables.membership import Lane, ViewRecord
from priocast.pipeline.tables.queue_depth import QueueDepth
from priocast.pipeline.tables.sender_times import SenderRate, SenderTime
from priocast.pipeline.tables.service_times import ServiceTime
from priocast.pipeline.tables.throughput import Throughput
from priocast.pipeline.verdicts import Verdict
from priocast.trace.weight_samples import WeightSample


@dataclass(frozen=True)
class Verification:
    """What was checked, and the verdicts."""

    runs: tuple[StoredRun, ...]
    counts: tuple[MessageCounts, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """The promises that were not kept."""
        return tuple(verdict for verdict in self.verdicts if verdict.promised and verdict.violations)

    @property
    def undecided(self) -> tuple[Verdict, ...]:
        """The promises of which the record cannot show whether they were kept."""
        return tuple(verdict for verdict in self.verdicts if verdict.promised and not verdict.decidable)

    @property
    def events(self) -> int:
        return sum(run.events for run in self.runs)


@dataclass(frozen=True)
class StudyResult(Verification):
    """A verification, with the measurements of the runs and the path of the report.

    Only runs whose manifest says so are measured by sender. `weights` are not in traces: whoever ran the
    group has sampled them.
    """

    delivery_times: tuple[DeliveryTime, ...]
    throughputs: tuple[Throughput, ...]
    queue_depths: tuple[QueueDepth, ...]
    inversions: tuple[Inversions, ...]
    views: tuple[ViewRecord, ...]
    lanes: tuple[Lane, ...]
    sender_times: tuple[SenderTime, ...] = ()
    sender_rates: tuple[SenderRate, ...] = ()
    weights: tuple[WeightSample, ...] = ()
    service_times: tuple[ServiceTime, ...] = ()
    report: Path | None = None
