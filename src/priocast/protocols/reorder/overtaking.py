"""A bound on overtaking, so that a steady stream of urgent messages does not starve the others.

A member counts, for each message whose number is agreed on and which its application has not consumed, how
many more urgent ones it has sent since then, and sends more of them only as far as that makes no more than
the bound. What is under way still overtakes the message, but that has an end: of all that the members send
while they know the number of a message and have not consumed it, no more than the bound of each is more
urgent. What others send does not count: their stream of urgent messages would keep an own one back for ever.

What a layer says to itself is no message: it neither counts nor waits.
"""

from collections import deque

from priocast.core.priority import HIGHEST
from priocast.core.protocol import WINDOW_MAX
from priocast.protocols.reorder.level_order import Join


class Overtaking:
    """What one member may send without overtaking anything more than `bound` times."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._passed: dict[int, int] = {}
        self._waiting: dict[int, deque[tuple[int, Join]]] = {}

    def waits(self, join: Join) -> None:
        """A batch has its number, and waits for the application."""
        passed = self._passed.setdefault(join.level, 0)
        self._of_level(join.level).append((passed, join))

    def sent(self, level: int, count: int) -> None:
        """So many messages of a level were sent."""
        if level <= HIGHEST:
            for below in self._passed:
                if below < level:
                    self._passed[below] += count

    def room(self, level: int) -> int:
        """How many messages of a level may be sent."""
        room = WINDOW_MAX
        if level > HIGHEST:
            return room
        for below in self._waiting:
            if below < level and (waiting := self._of_level(below)):
                room = min(room, self._bound - (self._passed[below] - waiting[0][0]))
        return max(0, room)

    def _of_level(self, level: int) -> deque[tuple[int, Join]]:
        """What waits in a level, without those at the beginning that were consumed."""
        waiting = self._waiting.setdefault(level, deque())
        while waiting and not waiting[0][1].left:
            waiting.popleft()
        return waiting
