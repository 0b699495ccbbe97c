"""The assembler: gathers what the application broadcasts within one turn into batches.

One call costs an append. Batches are cut by level, by bytes and by count when the turn comes, never by
waiting: at low load a message leaves alone at once, at high load hundreds share the cost of a step.
"""

from bisect import bisect_right
from itertools import accumulate

from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, Batch, pack


class Assembler:
    """The messages of one process that are not yet in a batch."""

    def __init__(self, me: ProcessId, prioritised: bool) -> None:
        self._me = me
        self._prioritised = prioritised
        self._payloads: dict[int, list[bytes]] = {}
        self._priorities = bytearray()
        self._next_number: dict[int, int] = {}
        self.count = 0
        self.bytes = 0

    def add(self, payload: bytes, priority: int) -> None:
        """Take one message."""
        level = priority
        if not self._prioritised:
            self._priorities.append(priority)
            level = 0
        try:
            self._payloads[level].append(payload)
        except KeyError:
            self._payloads[level] = [payload]
        self.count += 1
        self.bytes += len(payload)

    def add_many(self, payloads: list[bytes], priority: int) -> None:
        """Take several messages of one priority."""
        level = priority
        if not self._prioritised:
            self._priorities.extend(bytes([priority]) * len(payloads))
            level = 0
        self._payloads.setdefault(level, []).extend(payloads)
        self.count += len(payloads)
        self.bytes += sum(map(len, payloads))

    def close(self) -> list[Batch]:
        """Turn everything taken so far into batches, the most urgent first."""
        if not self.count:
            return []
        batches: list[Batch] = []
        for level in sorted(self._payloads, reverse=True):
            payloads = self._payloads[level]
            first = self._next_number.get(level, 0)
            for start, stop in _cuts(payloads):
                priorities = bytes(self._priorities[start:stop])
                batches.append(pack(self._me, level, first + start, payloads[start:stop], priorities))
            self._next_number[level] = first + len(payloads)
        assert sum(batch.count for batch in batches) == self.count
        self._payloads = {}
        self._priorities.clear()
        self.count = self.bytes = 0
        return batches


def _cuts(payloads: list[bytes]) -> list[tuple[int, int]]:
    """Where to cut payloads into batches of bounded bytes and count."""
    if len(payloads) == 1:
        return [(0, 1)]
    ends = list(accumulate(map(len, payloads)))
    cuts = []
    start = before = 0
    while start < len(payloads):
        stop = bisect_right(ends, before + BATCH_BYTES_CUT, start)
        stop = min(max(stop, start + 1), start + BATCH_COUNT_MAX)
        cuts.append((start, stop))
        start, before = stop, ends[stop - 1]
    return cuts
