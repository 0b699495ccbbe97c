"""Throughput: messages delivered per second at the slowest member: what the group as a whole does.

Of a time, only those members count who were in the group for the whole of it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from priocast.pipeline.tables.timeline import Timeline


@dataclass(frozen=True)
class Throughput:
    """One run: messages per second over all of it, and in each slice of `slice_s` seconds."""

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
        min((process.delivered[place] for process in processes if process.present[place]), default=0)
        for place in range(len(slowest.delivered))
    )
    return Throughput(run, slowest.process, slowest.rate, slice_s, tuple(count / slice_s for count in least))
