"""Credit: how much may be under way, so that the rest waits where priorities act.

`Outstanding` is the sender's side of a bound on messages that have left it and have no place yet.
`ConsumptionMeter` is the receiver's side of the ordering window: it grants as many messages as the
application takes within a given time, so the time for which an ordered message can no longer be overtaken
is bounded whatever the application's speed.
"""

from collections import deque

from priocast.core.errors import PeerFault
from priocast.core.message import Batch
from priocast.core.priority import CLASS_COUNT, class_of, limits_by_class

WINDOW_FIRST = 16
WINDOW_MIN = 2
WINDOW_MAX = 65_536
REOPENING_DIVISOR = 32
_FADING = 16


class Outstanding:
    """Own messages that were sent and have no place yet, in count and bytes, with a reserve by class.

    A class that has used up its share may send again when a part of it is free, and not for every single
    message: what waits meanwhile leaves in larger batches.
    """

    def __init__(self, count_max: int, bytes_max: int, reserved: bool) -> None:
        self._count_limits = limits_by_class(count_max, reserved)
        self._bytes_limits = limits_by_class(bytes_max, reserved)
        self._reopens_at = max(1, count_max // REOPENING_DIVISOR)
        self._exhausted = [False] * CLASS_COUNT
        self._sent: dict[int, deque[list[int]]] = {}
        self.count = 0
        self.bytes = 0

    def room(self, level: int) -> int:
        """How many more messages of this level may be sent now."""
        of_class = class_of(level)
        room = self._count_limits[of_class] - self.count
        if self.bytes >= self._bytes_limits[of_class]:
            room = 0
        self._exhausted[of_class] = room < (self._reopens_at if self._exhausted[of_class] else 1)
        return 0 if self._exhausted[of_class] else room

    def sent(self, batch: Batch) -> None:
        """A batch of ours is under way."""
        self._sent.setdefault(batch.level, deque()).append([batch.count, len(batch.block)])
        self.count += batch.count
        self.bytes += len(batch.block)

    def placed(self, batch: Batch) -> None:
        """Messages of ours, the oldest of their level, have their place."""
        under_way = self._sent.get(batch.level)
        left = batch.count
        while left:
            if not under_way:
                raise PeerFault(f"{batch} has a place, although {batch.sender} never sent it")
            count, size = under_way[0]
            if count <= left:
                under_way.popleft()
                freed_count, freed_bytes = count, size
            else:
                freed_count, freed_bytes = left, size * left // count
                under_way[0] = [count - freed_count, size - freed_bytes]
            self.count -= freed_count
            self.bytes -= freed_bytes
            left -= freed_count
        assert self.count >= 0 and self.bytes >= 0


class ConsumptionMeter:
    """How many messages the application takes within `window_ns`.

    The time per message is known only between two takes with messages waiting all the while: the ratio
    of the summed times to the summed counts, both fading by a sixteenth per take. An application that is
    idle tells nothing; one that takes half of what was granted in a single go may get twice as much.
    """

    def __init__(self, window: int | None, window_ns: int) -> None:
        self._fixed = window
        self._window_ns = window_ns
        self._busy_ns = window_ns
        self._busy_count = WINDOW_FIRST
        self._waiting = 0
        self._taken_at: int | None = None

    @property
    def window(self) -> int:
        """How many messages may be ordered and not yet consumed here."""
        if self._fixed is not None:
            return self._fixed
        return max(WINDOW_MIN, min(self._window_ns * self._busy_count // self._busy_ns, WINDOW_MAX))

    def queued(self, count: int) -> None:
        """Messages wait for the application."""
        self._waiting += count

    def consumed(self, count: int, now: int) -> None:
        """The application took messages that waited."""
        assert 0 < count <= self._waiting
        if self._taken_at is not None:
            self._busy_ns += now - self._taken_at - self._busy_ns // _FADING
            self._busy_count += count - self._busy_count // _FADING
        elif 2 * count >= self.window:
            self._busy_ns //= 2
        self._busy_ns = max(1, self._busy_ns)
        self._waiting -= count
        self._taken_at = now if self._waiting else None
