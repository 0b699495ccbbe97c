"""Throughput: messages delivered per second at the slowest member, which is what the group achieves.

In each slice of time, only the members count that were in the group for the whole slice.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from priocast.pipeline.tables.timeline import Timeline


@dataclass(frozen=True)
class Throughput:
    """One run: messages per second over the whole run, and in each slice of `slice_s` seconds."""

    run: str
    slowest: str
    per_second: float
    slice_s: float
    over_time: tuple[float, ...]


def throughputs(timelines: Iterable[Timeline]) -> list[Throughput]:
    """The throughput of each run."""
    of_run: dict[str, list[Timeline]] = defaultdict(list)
    for timeline in timelines:
        of_run[timeline.run].append(timeline)
    return [_throughput(run, processes) for run, processes in of_run.items()]


def _throughput(run: str, processes: list[Timeline]) -> Throughput:
    slowest = min(processes, key=lambda process: process.rate)
    slice_s = slowest.slice_s
    least = (
        min((process.delivered[index] for process in processes if process.present[index]), default=0)
        for index in range(len(slowest.delivered))
    )
    return Throughput(run, slowest.process, slowest.rate, slice_s, tuple(count / slice_s for count in least))
