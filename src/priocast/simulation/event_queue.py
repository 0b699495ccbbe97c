"""The event queue: which action happens next in virtual time.

Time is an integer of nanoseconds and does not advance while an action runs. Actions that are due at the same
time run in the order in which they were scheduled, so a run depends on nothing but its scenario.
"""

from collections.abc import Callable
from heapq import heappop, heappush


class EventQueue:
    """Scheduled actions, by time and then by the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 0
        self.executed = 0
        self._heap: list[tuple[int, int, Callable[[], object]]] = []
        self._number = 0

    def schedule(self, time: int, action: Callable[[], object]) -> None:
        """Schedule an action for a time that is not in the past."""
        assert time >= self.now
        self._number += 1
        heappush(self._heap, (time, self._number, action))

    def pop(self, until: int) -> Callable[[], object] | None:
        """Advance the time to the next action and return it; None if nothing is due up to `until`."""
        if not self._heap or self._heap[0][0] > until:
            return None
        time, _, action = heappop(self._heap)
        assert time >= self.now
        self.now = time
        self.executed += 1
        return action

    def pass_to(self, time: int) -> None:
        """Advance the time to this one, up to which nothing is due."""
        assert time >= self.now and (not self._heap or self._heap[0][0] > time)
        self.now = time
