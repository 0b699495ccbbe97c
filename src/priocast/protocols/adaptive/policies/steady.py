"""The book-keeper at the member with the steadiest round trips (the adaptive paper, section 7).

In a wide-area network members observe different rates, and the one whose round trips vary least observes
them best. Every member measures how much its round trips vary and reports it in its packets. The member that
knows of no steadier one keeps the book. Members may disagree on who that is for a while: two distributions
that are proposed at once have different ids, and all members change to both of them in the same order.
"""

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols.adaptive.policies.window import SlidingWindow

_FADING = 8
_MICROSECOND = 1_000
_REPORT_MAX = 1 << 40
_UNKNOWN = _REPORT_MAX + 1


class SteadyKeeper(SlidingWindow):
    """A sliding window at the member with the least variation; who has measured nothing comes last.

    The variation is the sum over the other members of the mean deviation of their round trips, which fades
    like the one of a link's timeout. It is reported in microseconds, rounded up to a power of two: small
    differences do not move the book.
    """

    NAME = "steady-keeper"
    MEASURES_ROUND_TRIPS = True

    def __init__(self, me: ProcessId, view: View, argument: str) -> None:
        super().__init__(me, view, argument)
        self._means = [0] * self.size
        self._deviations = [0] * self.size
        self._measured = 0
        self._reports = [_UNKNOWN] * self.size

    def on_messages(self, rank: int, count: int, urgency: int, now: int) -> None:
        if not self.keeps_book and self._left < self._length:
            self._restart()
        super().on_messages(rank, count, urgency, now)

    def on_round_trip(self, rank: int, nanoseconds: int) -> None:
        mean = self._means[rank]
        if not mean:
            self._means[rank] = nanoseconds
            return
        self._means[rank] += (nanoseconds - mean) // _FADING
        self._deviations[rank] += (abs(nanoseconds - mean) - self._deviations[rank]) // _FADING
        self._measured += 1
        self._reports[self.rank] = self._variation()

    def report(self) -> int:
        return self._reports[self.rank] if self._measured else 0

    def on_report(self, rank: int, report: int) -> None:
        if report and rank != self.rank:
            self._reports[rank] = min(report, _REPORT_MAX)

    @property
    def keeps_book(self) -> bool:
        return self._reports.index(min(self._reports)) == self.rank

    def _variation(self) -> int:
        """At least 1, because 0 means that nothing was measured."""
        microseconds = sum(self._deviations) // _MICROSECOND
        return min(1 << microseconds.bit_length(), _REPORT_MAX)
