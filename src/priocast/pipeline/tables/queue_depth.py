"""Queue depth: how many messages waited for their place where the order is decided, over time."""

from collections.abc import Iterable
from dataclasses import dataclass

from priocast.pipeline.tables.timeline import Timeline


@dataclass(frozen=True)
class QueueDepth:
    """One queue: the most that waited in each slice of `slice_s` seconds, and ever."""

    run: str
    process: str
    slice_s: float
    over_time: tuple[int, ...]

    @property
    def deepest(self) -> int:
        return max(self.over_time)


def queue_depths(timelines: Iterable[Timeline]) -> list[QueueDepth]:
    """The queue at each process that ever ordered alone, or at every process of a run where none did."""
    timelines = list(timelines)
    ordered_by_one = {timeline.run for timeline in timelines if timeline.is_orderer}
    return [
        QueueDepth(timeline.run, timeline.process, timeline.slice_s, timeline.waiting)
        for timeline in timelines
        if timeline.is_orderer or timeline.run not in ordered_by_one
    ]
