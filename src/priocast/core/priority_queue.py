"""The priority queue of batches: where the backlog forms, and so where priorities act.

A heap of batches by (sort key, arrival). Entering and leaving cost O(log b) for b batches, whatever the
number of messages in them (the papers' lists are linear in messages). The sort key comes from the starvation
policy; arrival makes it stable, so batches of one level leave in the order in which they arrived. A batch
that continues the last one with its sort key joins it: batches grow under load.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from priocast.core.inspection import QueueInspection, queues_by_level
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, Batch, Reference, pack
from priocast.core.priority import CLASS_SHIFT, HIGHEST, limits_by_class
from priocast.core.starvation import FirstInFirstOut, Starvation

EMPTY = -1
"""What a queue without a batch has instead of the urgency of the next one."""


class _QueuedBatches:
    """Batches of one sender and level with consecutive numbers; the first `cut` messages have left.

    `size` is the share of their blocks that has not left, `since` the time when the first of them arrived.
    """

    __slots__ = (
        "batches",
        "count",
        "cut",
        "number_next",
        "payloads",
        "priorities",
        "since",
        "size",
        "urgency",
    )

    def __init__(self, batch: Batch, urgency: int, since: int) -> None:
        self.batches = [batch]
        self.urgency = urgency
        self.since = since
        self.number_next = batch.first + batch.count
        self.count = batch.count
        self.size = len(batch.block)
        self.cut = 0
        self.payloads: list[bytes] | None = None
        self.priorities = b""

    def joined_by(self, batch: Batch, count_max: int) -> bool:
        """Add the batch with the next number, if it is of the same kind and both fit into one batch."""
        assert batch.first == self.number_next
        last = self.batches[-1]
        if (
            self.payloads is not None
            or batch.sender != last.sender
            or batch.level != last.level
            or batch.scope != last.scope
            or batch.scope.client
            or bool(batch.priorities) != bool(last.priorities)
            or self.size + len(batch.block) > BATCH_BYTES_CUT
            or self.count + batch.count > count_max
        ):
            return False
        self.batches.append(batch)
        self.number_next += batch.count
        self.count += batch.count
        self.size += len(batch.block)
        return True

    def take(self, count: int) -> Batch:
        """Remove `count` messages from the front; blocks are decoded only to be cut or joined, once."""
        if count == self.batches[0].count == self.count:
            return self.batches[0]
        start, self.cut = self.cut, self.cut + count
        return self._opened(start, self.cut)

    def left(self) -> list[Batch]:
        """What has not left yet."""
        return [self._opened(self.cut, self.count)] if self.cut else self.batches

    def _opened(self, start: int, end: int) -> Batch:
        if self.payloads is None:
            self.payloads = [payload for batch in self.batches for payload in batch.payloads()]
            self.priorities = b"".join(batch.priorities for batch in self.batches)
        head, priorities = self.batches[0], self.priorities[start:end]
        return pack(
            head.sender, head.level, head.first + start, self.payloads[start:end], priorities, head.scope
        )


class PriorityQueue:
    """Batches by sort key, then first in, first out; bounded, with a reserve for the classes above.

    `head_level` is the urgency of the batch that leaves next, EMPTY if there is none. Batches join up to
    `joined_max` messages.
    """

    def __init__(
        self, starvation: Starvation, count_max: int, bytes_max: int, joined_max: int = BATCH_COUNT_MAX
    ) -> None:
        self._sort_key = starvation.sort_key
        self._joined_max = joined_max
        self._heap: list[tuple[int, int, _QueuedBatches]] = []
        self._tails: dict[int, _QueuedBatches] = {}
        self._arrivals = 0
        reserved = not isinstance(starvation, FirstInFirstOut)
        self._count_limits = limits_by_class(count_max, reserved)
        self._bytes_limits = limits_by_class(bytes_max, reserved)
        self.head_level = EMPTY
        self.count = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def room(self, priority: int, count: int = 0, size: int = 0) -> int:
        """How many messages of this priority may enter after `count` more of `size` bytes have entered."""
        of_class = priority >> CLASS_SHIFT
        if self.bytes + size >= self._bytes_limits[of_class]:
            return 0
        return self._count_limits[of_class] - self.count - count

    def put(self, batch: Batch, now: int) -> None:
        """Add a batch. The caller has checked that there is room."""
        urgency = HIGHEST if batch.priorities else batch.level  # `Batch.urgency`
        sort_key = self._sort_key(urgency, now)
        tail = self._tails.get(sort_key)
        if tail is None or batch.first != tail.number_next or not tail.joined_by(batch, self._joined_max):
            self._arrivals += 1
            self._tails[sort_key] = tail = _QueuedBatches(batch, urgency, now)
            heappush(self._heap, (sort_key, self._arrivals, tail))
            if self._heap[0][2] is tail:
                self.head_level = urgency
        self.count += batch.count
        self.bytes += len(batch.block)

    def inspect(self, now: int) -> list[QueueInspection]:
        """What is in the queue by level, the highest first."""
        return queues_by_level(
            ((each.batches[0].level, each.count - each.cut, each.since) for _, _, each in self._heap), now
        )

    def head_sort_key(self) -> int:
        """The sort key of the batch that leaves next."""
        return self._heap[0][0]

    def head(self) -> Reference:
        """The reference to the batch that leaves next."""
        waiting = self._heap[0][2]
        batch = waiting.batches[0]
        return Reference(batch.sender, batch.level, batch.first + waiting.cut, waiting.count - waiting.cut)

    def leaving(self) -> Iterator[tuple[int, int, Batch]]:
        """What is in the queue, in the order of leaving: sort key, time of entering, and batch."""
        heap = self._heap.copy()
        while heap:
            sort_key, _, waiting = heappop(heap)
            for batch in waiting.left():
                yield sort_key, waiting.since, batch

    def take(self, count_max: int) -> Batch:
        """Remove the next batch, or as much of it as `count_max` allows."""
        waiting, count = self._leave(count_max)
        return waiting.take(count)

    def drop(self, count_max: int) -> None:
        """Remove the same messages without packing them into a batch."""
        waiting, count = self._leave(count_max)
        waiting.cut += count

    def _leave(self, count_max: int) -> tuple[_QueuedBatches, int]:
        """Account for the messages that leave next; return where they are, and how many."""
        assert self._heap and count_max > 0
        sort_key, _, waiting = self._heap[0]
        left = waiting.count - waiting.cut
        count, freed = left, waiting.size
        if left <= count_max:
            heappop(self._heap)
            self.head_level = self._heap[0][2].urgency if self._heap else EMPTY
            if self._tails[sort_key] is waiting:
                del self._tails[sort_key]
        else:
            # By share, because the blocks of what is cut or joined are not as long as what came in.
            count, freed = count_max, waiting.size * count_max // left
            waiting.size -= freed
        self.count -= count
        self.bytes -= freed
        assert self.count >= 0 and self.bytes >= 0
        return waiting, count

    def drain(self) -> list[Batch]:
        """Remove everything, in order."""
        batches = []
        while self._heap:
            batches.append(self.take(BATCH_COUNT_MAX))
        return batches
