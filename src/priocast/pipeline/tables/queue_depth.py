"""Queue depth: how many messages waited to be ordered, over time, where the order is decided.

If no single member decides it, they wait at every member.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from priocast.pipeline.tables.timeline import Timeline


@dataclass(frozen=True)
class QueueDepth:
    """One queue: the maximum depth in each slice of `slice_s` seconds, and of the whole run."""

    run: str
    process: str
    slice_s: float
    over_time: tuple[int, ...]

    @property
    def deepest(self) -> int:
        return max(self.over_time)


def queue_depths(timelines: Iterable[Timeline]) -> list[QueueDepth]:
    """The queue at each process that decided the order at any time, alone or with others."""
    return [
        QueueDepth(timeline.run, timeline.process, timeline.slice_s, timeline.waiting)
        for timeline in timelines
        if timeline.decides
    ]
