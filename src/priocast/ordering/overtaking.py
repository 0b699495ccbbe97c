"""A bound on overtaking, so that a steady stream of urgent messages does not starve the others.

A member counts, for each message whose number is agreed on and which its application has not consumed, how
many more urgent ones came to it from others, or were sent by it, since then. It sends more urgent ones only
as far as that makes no more than the bound. What is under way still overtakes the message, but that has an
end: of all that a member sends while it knows the number of a message and has not consumed it, no more than
the bound is more urgent.

What a layer says to itself is no message: it neither counts nor waits.
"""

from collections import deque

from priocast.core.priority import HIGHEST
from priocast.core.protocol import WINDOW_MAX
from priocast.ordering.joins import Join


class Overtaking:
    """What one member may send without overtaking anything more than `bound` times."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._passed: dict[int, int] = {}
        self._waiting: dict[int, deque[tuple[int, Join]]] = {}

    def waits(self, join: Join) -> None:
        """A batch has its number, and waits for the application."""
        passed = self._passed.setdefault(join.level, 0)
        self._waiting.setdefault(join.level, deque()).append((passed, join))

    def passes(self, level: int, count: int) -> None:
        """So many messages of a level came from another member, or were sent."""
        if level <= HIGHEST:
            for below in self._passed:
                if below < level:
                    self._passed[below] += count

    def room(self, level: int) -> int:
        """How many messages of a level may be sent."""
        room = WINDOW_MAX
        if level > HIGHEST:
            return room
        for below, waiting in self._waiting.items():
            while waiting and not waiting[0][1].left:
                waiting.popleft()
            if below < level and waiting:
                room = min(room, self._bound - (self._passed[below] - waiting[0][0]))
        return max(0, room)
