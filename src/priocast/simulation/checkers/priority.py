"""Priority: what the orderer lets into the order next is the most urgent of what waits there.

A message enters when the orderer receives it without a position, and leaves when the orderer sends it with
one. The starvation policy gives it a rank by its level and the time at which it entered; it may leave only
when nothing that waits has a lower one. This is exact for every policy, and implies what the policies bound.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from priocast.core.guarantees import PRIORITY
from priocast.core.starvation import Starvation
from priocast.simulation.checkers.checker import Checker, Key, Report, keys_of, name_of
from priocast.trace.schema import NO_POSITION, Row


class _Entry(NamedTuple):
    rank: int
    number: int
    key: Key


class Priority(Checker):
    """Keeps what waits at the orderer; `overtakings` counts messages that left before an older one."""

    PROPERTY = PRIORITY

    def __init__(self, report: Report, orderer: str, policy: Starvation) -> None:
        super().__init__(report)
        self._orderer = orderer
        self._policy = policy
        self._waiting: dict[Key, _Entry] = {}
        self._by_rank: list[_Entry] = []
        self._entered = 0
        self.overtakings = 0

    def on_received(self, row: Row) -> None:
        if row.member != self._orderer or row.position != NO_POSITION:
            return
        rank = self._policy.rank(row.level, row.time_ns)
        for key in keys_of(row):
            self._entered += 1
            entry = _Entry(rank, self._entered, key)
            self._waiting[key] = entry
            heappush(self._by_rank, entry)

    def on_sent(self, row: Row) -> None:
        if row.member != self._orderer or row.position == NO_POSITION:
            return
        for position, key in enumerate(keys_of(row), row.position):
            entry = self._waiting.pop(key, None)
            if entry is None:
                text = f"{row.member} orders {name_of(key)}, which does not wait there"
                self.violated(text, row.time_ns, position=position, messages=[key], members=[row.member])
            else:
                self._leaves(row, position, entry)

    def _leaves(self, row: Row, position: int, entry: _Entry) -> None:
        by_rank, waiting = self._by_rank, self._waiting
        while by_rank and by_rank[0].key not in waiting:
            heappop(by_rank)
        if not waiting:
            return
        assert by_rank, "what waits has a rank"
        self.overtakings += next(iter(waiting.values())).number < entry.number
        best = by_rank[0]
        if best.rank < entry.rank:
            text = f"{row.member} orders {name_of(entry.key)} while {name_of(best.key)}, more urgent, waits"
            self.violated(
                text, row.time_ns, position=position, messages=[entry.key, best.key], members=[row.member]
            )
