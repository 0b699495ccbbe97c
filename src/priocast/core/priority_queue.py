"""The priority queue of batches: where the backlog forms, and so where priorities act.

A heap of batches by (rank, arrival). Entering and leaving cost O(log b) for b batches, whatever the
number of messages in them (the papers' lists are linear in messages). The rank comes from the starvation
policy; arrival makes it stable, so batches of one level leave in the order in which they came. A batch that
continues the last one of its rank joins it: under load, when much waits, batches grow.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, Batch, Reference, pack
from priocast.core.priority import CLASS_SHIFT, limits_by_class
from priocast.core.starvation import FirstInFirstOut, Starvation


class _Waiting:
    """Batches of one sender and level whose numbers follow each other; the first `cut` messages have left.

    `size` is the share of their blocks that has not left, `since` when the first of them came.
    """

    __slots__ = ("batches", "count", "cut", "number_next", "payloads", "priorities", "since", "size")

    def __init__(self, batch: Batch, now: int) -> None:
        self.since = now
        self.batches = [batch]
        self.number_next = batch.first + batch.count
        self.count = batch.count
        self.size = len(batch.block)
        self.cut = 0
        self.payloads: list[bytes] | None = None
        self.priorities = b""

    def joined_by(self, batch: Batch) -> bool:
        """Let a batch with the next number travel along, if it is of the same kind and both fit into one."""
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
            or self.count + batch.count > BATCH_COUNT_MAX
        ):
            return False
        self.batches.append(batch)
        self.number_next += batch.count
        self.count += batch.count
        self.size += len(batch.block)
        return True

    def take(self, count: int) -> Batch:
        """Take `count` messages off the front; blocks are opened only to be cut or joined, and only once."""
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
    """Batches by rank, then first in, first out; bounded, with a reserve for the classes above."""

    def __init__(self, starvation: Starvation, count_max: int, bytes_max: int) -> None:
        self._sort_key = starvation.sort_key
        self._heap: list[tuple[int, int, _Waiting]] = []
        self._tails: dict[int, _Waiting] = {}
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
        of_class = priority >> CLASS_SHIFT
        if self.bytes + size >= self._bytes_limits[of_class]:
            return 0
        return self._count_limits[of_class] - self.count - count

    def put(self, batch: Batch, now: int) -> None:
        """Let a batch in. The caller has asked for room."""
        rank = self._sort_key(batch.urgency, now)
        tail = self._tails.get(rank)
        if tail is None or batch.first != tail.number_next or not tail.joined_by(batch):
            self._arrivals += 1
            self._tails[rank] = tail = _Waiting(batch, now)
            heappush(self._heap, (rank, self._arrivals, tail))
        self.count += batch.count
        self.bytes += len(batch.block)

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        """What is in the queue by level, the highest first: level, messages, time of the oldest (ns)."""
        by_level: dict[int, list[int]] = {}
        for _, _, waiting in self._heap:
            found = by_level.setdefault(waiting.batches[0].level, [0, now])
            found[0] += waiting.count - waiting.cut
            found[1] = min(found[1], waiting.since)
        return [(level, *_count_and_age(by_level[level], now)) for level in sorted(by_level, reverse=True)]

    def head_level(self) -> int:
        """The level that the batch which leaves next counts for."""
        assert self._heap, "an empty queue has no head"
        return self._heap[0][2].batches[0].urgency

    def head_sort_key(self) -> int:
        """The rank of the batch that leaves next."""
        return self._heap[0][0]

    def head(self) -> Reference:
        """The name of the batch that leaves next."""
        waiting = self._heap[0][2]
        batch = waiting.batches[0]
        return Reference(batch.sender, batch.level, batch.first + waiting.cut, waiting.count - waiting.cut)

    def leaving(self) -> Iterator[tuple[int, int, Batch]]:
        """What is in the queue, in the order in which it will leave: rank, time of entering, and batch."""
        heap = self._heap.copy()
        while heap:
            rank, _, waiting = heappop(heap)
            for batch in waiting.left():
                yield rank, waiting.since, batch

    def take(self, count_max: int) -> Batch:
        """Let the next batch out, or as much of it as `count_max` allows."""
        waiting, count = self._leave(count_max)
        return waiting.take(count)

    def drop(self, count_max: int) -> None:
        """Do the same without making a batch of it."""
        waiting, count = self._leave(count_max)
        waiting.cut += count

    def _leave(self, count_max: int) -> tuple[_Waiting, int]:
        """Count what leaves next as gone; return where it is, and how many messages it is."""
        assert self._heap and count_max > 0
        rank, _, waiting = self._heap[0]
        left = waiting.count - waiting.cut
        count, freed = left, waiting.size
        if left <= count_max:
            heappop(self._heap)
            if self._tails[rank] is waiting:
                del self._tails[rank]
        else:
            # By share, because the blocks of what is cut or joined are not as long as what came in.
            count, freed = count_max, waiting.size * count_max // left
            waiting.size -= freed
        self.count -= count
        self.bytes -= freed
        assert self.count >= 0 and self.bytes >= 0
        return waiting, count

    def drain(self) -> list[Batch]:
        """Let everything out, in order."""
        batches = []
        while self._heap:
            batches.append(self.take(BATCH_COUNT_MAX))
        return batches


def _count_and_age(found: list[int], now: int) -> tuple[int, int]:
    return found[0], now - found[1]
