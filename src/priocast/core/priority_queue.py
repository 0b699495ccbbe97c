"""The priority queue of batches: where the backlog forms, and so where priorities act.

A heap of batches by (rank, arrival). Entering and leaving cost O(log b) for b batches, whatever the
number of messages in them (the papers' lists are linear in messages). The rank comes from the starvation
policy; arrival makes it stable, so batches of one level leave in the order in which they came.
"""

from heapq import heappop, heappush

from priocast.core.message import Batch
from priocast.core.priority import class_of, limits_by_class
from priocast.core.starvation import FirstInFirstOut, Starvation


class _Waiting:
    """A batch in the queue, of which the first `cut` messages have left already."""

    __slots__ = ("batch", "cut", "payloads")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.cut = 0
        self.payloads: list[bytes] | None = None

    def take(self, count: int) -> Batch:
        """Cut `count` messages off the front; the block is opened once, however often it is cut."""
        if self.payloads is None:
            self.payloads = self.batch.payloads()
        part = self.batch.part(self.payloads, self.cut, self.cut + count)
        self.cut += count
        return part


class PriorityQueue:
    """Batches by rank, then first in, first out; bounded, with a reserve for the classes above."""

    def __init__(self, starvation: Starvation, count_max: int, bytes_max: int) -> None:
        self._rank = starvation.rank
        self._heap: list[tuple[int, int, _Waiting]] = []
        self._arrivals = 0
        reserved = not isinstance(starvation, FirstInFirstOut)
        self._count_limits = limits_by_class(count_max, reserved)
        self._bytes_limits = limits_by_class(bytes_max, reserved)
        self.count = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def room(self, priority: int, count: int = 0, size: int = 0) -> int:
        """How many messages of this priority may enter once `count` of `size` bytes have entered."""
        of_class = class_of(priority)
        if self.bytes + size >= self._bytes_limits[of_class]:
            return 0
        return self._count_limits[of_class] - self.count - count

    def put(self, batch: Batch, now: int) -> None:
        """Let a batch in. The caller has asked for room."""
        self._arrivals += 1
        heappush(self._heap, (self._rank(batch.level, now), self._arrivals, _Waiting(batch)))
        self.count += batch.count
        self.bytes += len(batch.block)

    def head_level(self) -> int:
        """The level of the batch that leaves next."""
        assert self._heap, "an empty queue has no head"
        return self._heap[0][2].batch.level

    def take(self, count_max: int) -> Batch:
        """Let the next batch out, or as much of it as `count_max` allows."""
        assert self._heap and count_max > 0
        waiting = self._heap[0][2]
        left = waiting.batch.count - waiting.cut
        if left <= count_max:
            heappop(self._heap)
            taken = waiting.take(left) if waiting.cut else waiting.batch
        else:
            taken = waiting.take(count_max)
        self.count -= taken.count
        # The parts of a cut batch are a few bytes longer than the whole; an empty queue has none.
        self.bytes = max(0, self.bytes - len(taken.block)) if self._heap else 0
        assert self.count >= 0
        return taken
