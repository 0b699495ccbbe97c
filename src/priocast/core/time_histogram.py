"""A histogram of durations: counts in fixed buckets, ten for each decade from 10 us to 100 s.

The bounds are the preferred numbers of the series R10, rounded: 1, 2, 2.5 and 5 of each decade are among
them, so that the coarser buckets of a metric are exact. A percentile that is read from it is at most a
quarter too high.
"""

from bisect import bisect_left

_SERIES = (100, 125, 160, 200, 250, 315, 400, 500, 630, 800)
BOUNDS_NS = (*(step * 10**decade * 100 for decade in range(7) for step in _SERIES), 100_000_000_000)


class TimeHistogram:
    """How many durations there were in each bucket, and their total.

    `counts` has one more entry than there are bounds, for durations above all of them.
    """

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        self.total_ns = 0

    def add(self, duration_ns: int, count: int = 1) -> None:
        """Count durations that are the same."""
        self.counts[bisect_left(BOUNDS_NS, duration_ns)] += count
        self.total_ns += duration_ns * count

    @property
    def count(self) -> int:
        """How many durations were counted."""
        return sum(self.counts)

    def counts_up_to(self, bounds_ns: tuple[int, ...]) -> list[int]:
        """How many durations were at most as long as each of these bounds, which must be among ours."""
        found, total, index = [], 0, 0
        for bound in bounds_ns:
            end = BOUNDS_NS.index(bound) + 1
            total += sum(self.counts[index:end])
            index = end
            found.append(total)
        return found
