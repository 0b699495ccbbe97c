"""The last packets of all members: what share of them is whose, to a fraction of a packet.

Of a steady sender a window has 12 packets now and 13 a little later. Weights that follow such counts are
wrong by a twelfth, and that is much: senders drift past each other's slots, and wait for skips. So the
intervals between a member's packets tell the fraction that their number lacks.
"""

from collections import deque

#: Counts are in these fractions of a packet.
FRACTIONS = 256


class RecentPackets:
    """A window over the last `length` packets; a packet has a value, 1 or more."""

    def __init__(self, size: int, length: int) -> None:
        self._length = length
        self._window: deque[tuple[int, int, int]] = deque()
        self._numbers = [0] * size
        self._values = [0] * size
        #: When the packets of each member in the window came, and the last one before them.
        self._times: list[deque[int]] = [deque() for _ in range(size)]

    def add(self, rank: int, value: int, now: int) -> None:
        """A packet came from a member."""
        self._window.append((rank, value, now))
        self._numbers[rank] += 1
        self._values[rank] += value
        self._times[rank].append(now)
        if len(self._window) > self._length:
            left, lost, _ = self._window.popleft()
            self._numbers[left] -= 1
            self._values[left] -= lost
            if len(self._times[left]) > self._numbers[left] + 1:
                self._times[left].popleft()

    def counts(self) -> list[int]:
        """What each member's packets count, in fractions."""
        return [self._counted(rank) for rank in range(len(self._numbers))]

    def _counted(self, rank: int) -> int:
        """By the intervals of a member's packets, but within one packet of their number."""
        number, value, times = self._numbers[rank], self._values[rank], self._times[rank]
        if not number or times[0] == times[-1]:
            return FRACTIONS * value
        lasted = self._window[-1][2] - self._window[0][2]
        packets = FRACTIONS * (len(times) - 1) * lasted // (times[-1] - times[0])
        return value * max(FRACTIONS * (number - 1), min(packets, FRACTIONS * (number + 1))) // number
