"""The book-keeper with a sliding window (the adaptive paper, section 6.1), and one that counts priorities.

One member, the view's coordinator, counts the packets of each member among the last N x n, for n members. It
proposes weights in proportion when they differ enough from those in use.
"""

from collections.abc import Sequence

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.priority import CLASS_SHIFT
from priocast.core.view import View
from priocast.protocols.adaptive.policies.policy import CHANGE_DIVISOR, AdaptationPolicy, differ, differing
from priocast.protocols.adaptive.policies.recent_packets import RecentPackets

FACTOR = 8
FACTOR_MAX = 1_000
_PERIOD_DIVISOR = 4
#: Shares that moved by no more than this part since the last comparison are steady. What differs then from
#: the weights in use is no accident of the sample, and a smaller difference is worth a new distribution.
_STEADY_DIVISOR = 32
_STEADY_CHANGE_DIVISOR = 16


class SlidingWindow(AdaptationPolicy):
    """Counts packets, because a packet takes a slot however many messages it carries.

    The argument is the paper's window size factor, N. The shares are compared every quarter of a window.
    """

    NAME = "sliding-window"

    def __init__(self, me: ProcessId, view: View, argument: str) -> None:
        super().__init__(me, view, argument)
        self._length = (int(argument) if argument else FACTOR) * self.size
        self._restart()

    def _restart(self) -> None:
        self._packets = RecentPackets(self.size, self._length)
        self._counts: list[int] | None = None
        self._left = self._length

    @classmethod
    def check(cls, argument: str) -> None:
        if argument and not (argument.isdecimal() and 1 <= int(argument) <= FACTOR_MAX):
            raise InvalidOption(
                f"adaptation is '{cls.NAME}:{argument}': the window size factor must be between 1 and "
                f"{FACTOR_MAX} packets per member"
            )

    def on_messages(self, rank: int, count: int, urgency: int, now: int) -> None:
        if not self.keeps_book:
            return
        self._left -= 1
        self._packets.add(rank, self.value_of(urgency), now)

    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        if self._left > 0 or not self.keeps_book:
            return None
        self._left = max(1, self._length // _PERIOD_DIVISOR)
        counts, before = self._packets.counts(), self._counts
        self._counts = counts
        is_steady = before is not None and not differ(counts, before, _STEADY_DIVISOR)
        return differing(counts, weights, _STEADY_CHANGE_DIVISOR if is_steady else CHANGE_DIVISOR)

    @property
    def keeps_book(self) -> bool:
        """Whether this member is the one that proposes weights."""
        return self.rank == 0

    def value_of(self, urgency: int) -> int:
        """How much a packet counts."""
        return 1


class PriorityWindow(SlidingWindow):
    """Counts a packet of the class of routine messages once, and twice as much for each higher class."""

    NAME = "priority-window"

    def value_of(self, urgency: int) -> int:
        return 1 << (urgency >> CLASS_SHIFT)
