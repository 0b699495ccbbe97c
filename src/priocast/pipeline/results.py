"""The results of the pipeline: plain values, for the command line, the demo and the report."""

from dataclasses import dataclass
from pathlib import Path

from priocast.pipeline.message_table import MessageCounts
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.tables.delivery_time import DeliveryTime
from priocast.pipeline.tables.inversions import Inversions
from priocast.pipeline.tables.membership import Lane, ViewRecord
from priocast.pipeline.tables.queue_depth import QueueDepth
from priocast.pipeline.tables.service_times import ServiceTime
from priocast.pipeline.tables.throughput import Throughput
from priocast.pipeline.verdicts import Verdict


@dataclass(frozen=True)
class Verification:
    """What was checked, and the verdicts."""

    runs: tuple[StoredRun, ...]
    counts: tuple[MessageCounts, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """The promises that were not kept."""
        return tuple(verdict for verdict in self.verdicts if verdict.promised and not verdict.holds)

    @property
    def events(self) -> int:
        return sum(run.events for run in self.runs)


@dataclass(frozen=True)
class StudyResult(Verification):
    """A verification, with the measurements of the runs and the path of the report."""

    delivery_times: tuple[DeliveryTime, ...]
    throughputs: tuple[Throughput, ...]
    queue_depths: tuple[QueueDepth, ...]
    inversions: tuple[Inversions, ...]
    views: tuple[ViewRecord, ...]
    lanes: tuple[Lane, ...]
    service_times: tuple[ServiceTime, ...] = ()
    report: Path | None = None
