"""A bound on overtaking, so that a steady stream of urgent messages does not starve the others.

For each message that is decided and that its application has not consumed, a member counts how many more
urgent messages it has sent since the decision. It sends further ones only within the bound. Messages in
flight still overtake the message, but their number is limited: while a member knows the decision and has
not consumed the message, it sends at most `bound` more urgent ones. The messages of other members do not
count: otherwise their stream of urgent messages would block this member's own for ever.

Control messages of a layer neither count nor wait.
"""

from collections import deque

from priocast.core.priority import HIGHEST
from priocast.core.protocol import WINDOW_MAX
from priocast.protocols.reorder.level_order import Insertion


class OvertakingBound:
    """How many messages one member may send without overtaking any message more than `bound` times."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._passed: dict[int, int] = {}
        self._waiting: dict[int, deque[tuple[int, Insertion]]] = {}

    def waits(self, insertion: Insertion) -> None:
        """A batch is decided and waits for the application."""
        passed = self._passed.setdefault(insertion.level, 0)
        self._of_level(insertion.level).append((passed, insertion))

    def sent(self, level: int, count: int) -> None:
        """This member sent messages of a level."""
        if level <= HIGHEST:
            for below in self._passed:
                if below < level:
                    self._passed[below] += count

    def room(self, level: int) -> int:
        """How many messages of a level this member may send."""
        room = WINDOW_MAX
        if level > HIGHEST:
            return room
        for below in self._waiting:
            if below < level and (waiting := self._of_level(below)):
                room = min(room, self._bound - (self._passed[below] - waiting[0][0]))
        return max(0, room)

    def _of_level(self, level: int) -> deque[tuple[int, Insertion]]:
        """The batches that wait in a level, without those at the front that were consumed."""
        waiting = self._waiting.setdefault(level, deque())
        while waiting and not waiting[0][1].left:
            waiting.popleft()
        return waiting
