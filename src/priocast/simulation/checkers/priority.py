"""Priority: what leaves a queue next is the most urgent of what waits there.

Two kinds of queues are judged, in every view that is prioritised:

- *Sending*, unless a class sends first in, first out: what a member has broadcast and not sent. A message
  enters with its broadcast, and leaves when its sender first sends a packet that carries it. What comes from
  an earlier view is in the queue, too, but nobody saw it enter: it is not judged.
- *Sequencing*, in the classes whose priorities act there: what waits at a member that gives out places. A
  message enters when the member receives it without a place, and leaves when the member sends it with one. It
  waits no longer when it is handed on, or when another member gives it a place. Where one member alone gives
  out places, nothing gets one that does not wait there.

The starvation policy gives a message a rank by its level and the time at which it entered; it may leave only
when nothing that waits has a lower one. This is exact for every policy, and implies what the policies bound.
What waits when a view ends waits no longer: it enters again, in the next view.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import ProcessId
from priocast.core.starvation import Starvation
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
from priocast.trace.recorded_run import urgency_of
from priocast.trace.recorder import view_order
from priocast.trace.schema import NO_POSITION, MessageRow


class _Entry(NamedTuple):
    rank: int
    number: int
    key: Key


class _Queue:
    """What waits in one place."""

    def __init__(self, policy: Starvation) -> None:
        self.waiting: dict[Key, _Entry] = {}
        self.early: set[Key] = set()  # those whose places came before them
        self._rank = policy.rank
        self._by_rank: list[_Entry] = []
        self._entered = 0

    def enter(self, row: MessageRow) -> None:
        rank = self._rank(urgency_of(row), row.time_ns)
        for key in keys_of(row):
            if key in self.early:
                self.early.remove(key)
                continue
            self._entered += 1
            entry = self.waiting[key] = _Entry(rank, self._entered, key)
            heappush(self._by_rank, entry)

    def best(self) -> _Entry | None:
        """The one that should leave next."""
        while self._by_rank and self.waiting.get(self._by_rank[0].key) != self._by_rank[0]:
            heappop(self._by_rank)
        return self._by_rank[0] if self._by_rank else None


class _Stay:
    """One member in one view: its queues, those that are judged. `orders` if it alone gives out places."""

    def __init__(
        self, view: ViewKey, sending: _Queue | None, sequencing: _Queue | None, orders: bool
    ) -> None:
        self.view = view
        self.sending = sending
        self.sequencing = sequencing
        self.orders = orders


class Priority(Checker):
    """Keeps what waits in the queues, and counts messages that left before an older one."""

    PROPERTY = PRIORITY

    def __init__(self, report: Report, counters: Counters) -> None:
        super().__init__(report)
        self._counters = counters
        self._stays: dict[str, _Stay] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        order = view_order(ordering)
        sends = not order.is_plain and order.sends_by_priority
        sequences = not order.is_plain and order.priorities_act == "sequencing"
        self._stays[str(me)] = _Stay(
            (view.number, str(view.coordinator)),
            _Queue(order.starvation) if sends else None,
            _Queue(order.starvation) if sequences else None,
            find_protocol(ordering.order).orderer(view) == me,
        )

    def on_broadcast(self, row: MessageRow) -> None:
        stay = self._stay(row)
        if stay is not None and stay.sending is not None:
            stay.sending.enter(row)

    def on_received(self, row: MessageRow) -> None:
        stay = self._stay(row)
        if stay is None or stay.sequencing is None:
            return
        if row.position != NO_POSITION:
            self._forget(stay.sequencing, row)
        elif row.bytes:
            stay.sequencing.enter(row)

    def on_sent(self, row: MessageRow) -> None:
        stay = self._stay(row)
        if stay is None:
            return
        if stay.sending is not None and row.bytes:
            self._leave(row, stay.sending, "sends")
        if stay.sequencing is None:
            return
        if row.position == NO_POSITION:
            self._forget(stay.sequencing, row)
        else:
            self._leave(row, stay.sequencing, "orders", from_nowhere=not stay.orders)

    def _stay(self, row: MessageRow) -> _Stay | None:
        stay = self._stays.get(process_of(row))
        return stay if stay is not None and stay.view == view_of(row) else None

    def _forget(self, queue: _Queue, row: MessageRow) -> None:
        named_only = row.position != NO_POSITION and not row.bytes
        for key in keys_of(row):
            if queue.waiting.pop(key, None) is None and named_only:
                queue.early.add(key)

    def _leave(self, row: MessageRow, queue: _Queue, does: str, from_nowhere: bool = True) -> None:
        """Messages leave; `from_nowhere` says that they need not have waited here."""
        process = process_of(row)
        for index, key in enumerate(keys_of(row)):
            position = row.position if row.position == NO_POSITION else row.position + index
            entry = queue.waiting.pop(key, None)
            best = queue.best()
            if entry is None:
                if not from_nowhere:
                    text = f"{process} {does} {name_of(key)}, which does not wait there"
                    self._wrong(row, position, text, [key])
                continue
            if best is None:
                continue
            if next(iter(queue.waiting.values())).number < entry.number:
                self._counters.count("overtaking")
            if best.rank < entry.rank:
                text = f"{process} {does} {name_of(key)} while {name_of(best.key)}, more urgent, waits"
                self._wrong(row, position, text, [key, best.key])

    def _wrong(self, row: MessageRow, position: int, text: str, messages: list[Key]) -> None:
        self.violated(text, row.time_ns, position=position, messages=messages, members=[process_of(row)])
