"""The positions of this member's own messages, for those who wait for the position of one.

Most broadcasts are not waited for. All that is done for them is to remember where the last batches were
delivered.
"""

from collections import deque
from collections.abc import Callable

from priocast.core.assembler import NOT_NUMBERED, NUMBERED_ANEW, Run

_BATCHES_REMEMBERED = 1024

OnPosition = Callable[[int | None], None]


class OwnPositions:
    """Where own messages were delivered, and who waits for one.

    The stream appends to `recent` what it delivers: level, first number, count and position of a part of a
    batch. It calls `resolve` then if somebody is `awaited`.
    """

    def __init__(self) -> None:
        self.recent: deque[tuple[int, int, int, int]] = deque(maxlen=_BATCHES_REMEMBERED)
        self.awaited = False
        self._unnumbered: list[tuple[Run, int, OnPosition]] = []
        self._waiting: dict[tuple[int, int], list[OnPosition]] = {}
        self._over = False

    def watch(self, run: Run, index: int, on_position: OnPosition) -> None:
        """Call `on_position` with the position of a message, or with None if it will not be known here.

        The message is the one with this index in its run.
        """
        if self._over or run.first == NUMBERED_ANEW:
            on_position(None)
            return
        if run.first != NOT_NUMBERED:
            found = self._find(run.level, run.first + index)
            if found is not None:
                on_position(found)
                return
        self._unnumbered.append((run, index, on_position))
        self.awaited = True

    def resolve(self) -> None:
        """A part of a batch was delivered: the last of the `recent` ones."""
        for run, index, on_position in self._unnumbered:
            if run.first == NUMBERED_ANEW:
                on_position(None)
            elif run.first != NOT_NUMBERED:
                self._waiting.setdefault((run.level, run.first + index), []).append(on_position)
        self._unnumbered = [each for each in self._unnumbered if each[0].first == NOT_NUMBERED]
        level, first, count, position = self.recent[-1]
        for offset in range(count):
            for on_position in self._waiting.pop((level, first + offset), ()):
                on_position(position + offset)
        self.awaited = bool(self._unnumbered or self._waiting)

    def close(self) -> None:
        """This incarnation is over: who still waits is not told a position."""
        self._over = True
        waiting = [each for _, _, each in self._unnumbered]
        for of_message in self._waiting.values():
            waiting.extend(of_message)
        self._unnumbered, self._waiting, self.awaited = [], {}, False
        for on_position in waiting:
            on_position(None)

    def _find(self, level: int, number: int) -> int | None:
        for of_level, first, count, position in reversed(self.recent):
            if of_level == level and first <= number < first + count:
                return position + number - first
        return None
