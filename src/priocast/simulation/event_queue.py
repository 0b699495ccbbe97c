"""The agenda: what happens next in virtual time.

Time is an integer of nanoseconds and stands still while something happens. What is due at the same time
happens in the order in which it was put down, so a run depends on nothing but its scenario.
"""

from collections.abc import Callable
from heapq import heappop, heappush


class EventQueue:
    """Actions by time, then by the order in which they were put down."""

    def __init__(self) -> None:
        self.now = 0
        self.happened = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Put down an action for a time that is not past."""
        assert time >= self.now
        self._number += 1
        heappush(self._heap, (time, self._number, action))

    def next(self, until: int) -> Callable[[], None] | None:
        """Move time on to the next action and return it; None when nothing is left before `until`."""
        if not self._heap or self._heap[0][0] > until:
            return None
        time, _, action = heappop(self._heap)
        assert time >= self.now
        self.now = time
        self.happened += 1
        return action
