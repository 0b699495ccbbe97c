"""Priority: what the orderer of a view lets into the order next is the most urgent of what waits there.

A message enters when the orderer receives it without a position, and leaves when the orderer sends it with
one. The starvation policy gives it a rank by its level and the time at which it entered; it may leave only
when nothing that waits has a lower one. This is exact for every policy, and implies what the policies bound.
What waits when a view ends waits no longer: it enters again, in the next view.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import ProcessId
from priocast.core.priority import HIGHEST
from priocast.core.starvation import FirstInFirstOut, Starvation, parse_starvation
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.simulation.checkers.checker import (
    Checker,
    Key,
    Report,
    ViewKey,
    keys_of,
    name_of,
    process_of,
    view_of,
)
from priocast.simulation.counters import Counters
from priocast.trace.schema import NO_POSITION, Row


class _Entry(NamedTuple):
    rank: int
    number: int
    key: Key


class _Queue:
    """What waits at the orderer of one view."""

    def __init__(self, orderer: str, policy: Starvation) -> None:
        self.orderer = orderer
        self.policy = policy
        self.waiting: dict[Key, _Entry] = {}
        self._by_rank: list[_Entry] = []
        self._entered = 0

    def enter(self, key: Key, rank: int) -> None:
        self._entered += 1
        entry = self.waiting[key] = _Entry(rank, self._entered, key)
        heappush(self._by_rank, entry)

    def best(self) -> _Entry | None:
        """The one that should leave next."""
        while self._by_rank and self.waiting.get(self._by_rank[0].key) != self._by_rank[0]:
            heappop(self._by_rank)
        return self._by_rank[0] if self._by_rank else None


class Priority(Checker):
    """Keeps what waits at the orderers, and counts messages that left before an older one."""

    PROPERTY = PRIORITY

    def __init__(self, report: Report, counters: Counters) -> None:
        super().__init__(report)
        self._counters = counters
        self._queues: dict[ViewKey, _Queue] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        key = (view.number, str(view.coordinator))
        orderer = find_protocol(ordering.order).orderer(view)
        if orderer is not None and key not in self._queues:
            policy = parse_starvation(ordering.starvation) if ordering.prioritised else FirstInFirstOut()
            self._queues[key] = _Queue(str(orderer), policy)

    def on_received(self, row: Row) -> None:
        queue = self._queues.get(view_of(row))
        if queue is None or process_of(row) != queue.orderer or row.position != NO_POSITION:
            return
        # What was broadcast in a plain view and is sent again in a prioritised one goes before all others.
        rank = queue.policy.rank(HIGHEST if row.priorities else row.level, row.time_ns)
        for key in keys_of(row):
            queue.enter(key, rank)

    def on_sent(self, row: Row) -> None:
        queue = self._queues.get(view_of(row))
        if queue is None or process_of(row) != queue.orderer or row.position == NO_POSITION:
            return
        for position, key in enumerate(keys_of(row), row.position):
            entry = queue.waiting.pop(key, None)
            if entry is None:
                text = f"{process_of(row)} orders {name_of(key)}, which does not wait there"
                self._wrong(row, position, text, [key])
            else:
                self._leaves(row, position, entry, queue)

    def _leaves(self, row: Row, position: int, entry: _Entry, queue: _Queue) -> None:
        best = queue.best()
        if best is None:
            return
        if next(iter(queue.waiting.values())).number < entry.number:
            self._counters.count("overtaking")
        if best.rank < entry.rank:
            text = (
                f"{process_of(row)} orders {name_of(entry.key)} while {name_of(best.key)}, more urgent, waits"
            )
            self._wrong(row, position, text, [entry.key, best.key])

    def _wrong(self, row: Row, position: int, text: str, messages: list[Key]) -> None:
        self.violated(text, row.time_ns, position=position, messages=messages, members=[process_of(row)])
