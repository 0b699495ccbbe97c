"""The assembler: collects what the application broadcasts within one turn into batches.

A call costs one append. Batches are cut by level, by bytes and by count at the end of the turn, never by
waiting: at low load a message leaves alone and at once, at high load hundreds share the cost of a step.
"""

from bisect import bisect_right
from itertools import accumulate

from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, TO_ALL, Batch, Scope, pack

NOT_NUMBERED = -1
NUMBERED_ANEW = -2
"""Of messages that were numbered again: their numbers are not known to those who broadcast them."""


class Run:
    """Consecutive messages of one level and scope that were broadcast within one turn.

    `first` is the number of the first of them on this level: NOT_NUMBERED until they are in a batch.
    """

    __slots__ = ("first", "level", "payloads")

    def __init__(self, level: int, first: int = NOT_NUMBERED, payloads: list[bytes] | None = None) -> None:
        self.level = level
        self.first = first
        self.payloads: list[bytes] = [] if payloads is None else payloads


class Assembler:
    """The messages of one process that are not yet in a batch; batches are cut at `batch_bytes`."""

    def __init__(self, me: ProcessId, prioritised: bool, batch_bytes: int = BATCH_BYTES_CUT) -> None:
        self._me = me
        self._prioritised = prioritised
        self._batch_bytes = batch_bytes
        self._open: dict[int, Run] = {}
        self._runs: dict[int, list[tuple[Scope, bool, Run]]] = {}
        self._priorities = bytearray()
        self._next_number: dict[int, int] = {}
        self.count = 0
        self.bytes = 0

    @property
    def prioritised(self) -> bool:
        """Whether the level of a message is its priority; otherwise all have level 0."""
        return self._prioritised

    @prioritised.setter
    def prioritised(self, prioritised: bool) -> None:
        self._prioritised = prioritised
        self._open.clear()

    def add(self, payload: bytes, priority: int) -> Run:
        """Add one message to all members; return the run of which it is the last."""
        level = priority
        if not self._prioritised:
            self._priorities.append(priority)
            level = 0
        try:
            run = self._open[level]
        except KeyError:
            run = self._run(level, TO_ALL)
        run.payloads.append(payload)
        self.count += 1
        self.bytes += len(payload)
        return run

    def add_many(self, payloads: list[bytes], priority: int, scope: Scope = TO_ALL) -> Run:
        """Add several messages of one priority and scope; return the run of which they are the last."""
        level = priority
        if not self._prioritised:
            self._priorities.extend(bytes([priority]) * len(payloads))
            level = 0
        run = self._run(level, scope)
        run.payloads.extend(payloads)
        self.count += len(payloads)
        self.bytes += sum(map(len, payloads))
        return run

    def close(self) -> list[Batch]:
        """Pack everything added so far into batches, the most urgent first."""
        if not self.count:
            return []
        batches: list[Batch] = []
        plain = packed = 0
        for level in sorted(self._runs, reverse=True):
            number = self._next_number.get(level, 0)
            for scope, prioritised, run in self._runs[level]:
                run.first, payloads = number, run.payloads
                for start, stop in _cuts(payloads, self._batch_bytes):
                    packed += stop - start
                    priorities = b"" if prioritised else bytes(self._priorities[plain + start : plain + stop])
                    batches.append(
                        pack(self._me, level, number + start, payloads[start:stop], priorities, scope)
                    )
                number += len(payloads)
                run.payloads = []  # a handle of a message keeps the run, and must not keep its payloads
                plain += 0 if prioritised else len(payloads)
            self._next_number[level] = number
        assert packed == self.count
        self._runs = {}
        self._open = {}
        self._priorities.clear()
        self.count = self.bytes = 0
        return batches

    def restart(self) -> list[Batch]:
        """Take back everything, and number from 0 again; nothing may have been sent yet."""
        runs = [run for of_level in self._runs.values() for _, _, run in of_level]
        batches = self.close()
        self._next_number = {}
        for run in runs:
            run.first = NUMBERED_ANEW
        return batches

    def _run(self, level: int, scope: Scope) -> Run:
        """The list that messages of this level and scope are added to; a client's request has its own."""
        runs = self._runs.setdefault(level, [])
        if not runs or scope.client or runs[-1][:2] != (scope, self._prioritised):
            runs.append((scope, self._prioritised, Run(level)))
        if scope == TO_ALL:
            self._open[level] = runs[-1][2]
        else:
            self._open.pop(level, None)
        return runs[-1][2]


def _cuts(payloads: list[bytes], bytes_max: int) -> list[tuple[int, int]]:
    """Where to cut payloads into batches of bounded bytes and count."""
    if len(payloads) == 1:
        return [(0, 1)]
    ends = list(accumulate(map(len, payloads)))
    cuts = []
    start = before = 0
    while start < len(payloads):
        stop = bisect_right(ends, before + bytes_max, start)
        stop = min(max(stop, start + 1), start + BATCH_COUNT_MAX)
        cuts.append((start, stop))
        start, before = stop, ends[stop - 1]
    return cuts
