"""Priority: the message that leaves a queue next is the most urgent one that waits there.

Two kinds of queues are checked, in every prioritised view:

- *Sending*, unless a protocol sends first in, first out: what a member has broadcast and not yet sent. A
  message enters when it is broadcast, and leaves when its sender first sends a packet that carries it. A
  message from an earlier view is in the queue, too, but nobody saw it enter: it is not checked.
- *Sequencing*, in the protocols whose priorities act there: what waits at a member that assigns positions. A
  message enters when the member receives it without a position, and leaves when the member sends it with one.
  It waits no longer when it is passed on, or when another member assigns its position. Where one member alone
  assigns positions, it assigns them only to messages that wait there.

The starvation policy gives a message a sort key by its level and the time at which it entered. It may leave
only when nothing that waits has a lower one. This is exact for every policy, and implies their bounds. What
waits when a view ends waits no longer: it enters again, in the next view.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import ProcessId
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.simulation.checkers.checker import Checker, ReportViolation, view_key
from priocast.simulation.checkers.rows import (
    Key,
    ViewKey,
    keys_of,
    message_name,
    process_of,
    urgency_of,
    view_of,
)
from priocast.simulation.counters import Counters
from priocast.trace.recorder import view_order
from priocast.trace.schema import NO_POSITION, MessageRow


class _QueueEntry(NamedTuple):
    sort_key: int
    number: int
    key: Key


class _CheckedQueue:
    """What waits in one queue; `early` are messages whose positions were known before they arrived."""

    def __init__(self, policy: Starvation) -> None:
        self.waiting: dict[Key, _QueueEntry] = {}
        self.early: set[Key] = set()
        self._sort_key = policy.sort_key
        self._sorted: list[_QueueEntry] = []
        self._entered = 0

    def enter(self, row: MessageRow) -> None:
        """The messages of a row enter the queue."""
        sort_key = self._sort_key(urgency_of(row), row.time_ns)
        for key in keys_of(row):
            if key in self.early:
                self.early.remove(key)
                continue
            self._entered += 1
            entry = self.waiting[key] = _QueueEntry(sort_key, self._entered, key)
            heappush(self._sorted, entry)

    def remove(self, row: MessageRow) -> None:
        """The messages of a row need no position from this member any more."""
        named_only = row.position != NO_POSITION and not row.bytes
        for key in keys_of(row):
            if self.waiting.pop(key, None) is None and named_only:
                self.early.add(key)

    def head(self) -> _QueueEntry | None:
        """The message that should leave next."""
        while self._sorted and self.waiting.get(self._sorted[0].key) != self._sorted[0]:
            heappop(self._sorted)
        return self._sorted[0] if self._sorted else None


class _MemberQueues:
    """The checked queues of one member in one view; `is_orderer` if it alone assigns positions."""

    def __init__(
        self,
        view: ViewKey,
        sending: _CheckedQueue | None,
        sequencing: _CheckedQueue | None,
        is_orderer: bool,
    ) -> None:
        self.view = view
        self.sending = sending
        self.sequencing = sequencing
        self.is_orderer = is_orderer


class Priority(Checker):
    """Tracks what waits in the queues, and counts messages that left before an older one."""

    GUARANTEE = PRIORITY

    def __init__(self, report: ReportViolation, counters: Counters) -> None:
        super().__init__(report)
        self._counters = counters
        self._members: dict[str, _MemberQueues] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        order = view_order(ordering)
        sends = not order.is_plain and order.sends_by_priority
        sequences = not order.is_plain and order.priorities_act == "sequencing"
        self._members[str(me)] = _MemberQueues(
            view_key(view),
            _CheckedQueue(order.starvation) if sends else None,
            _CheckedQueue(order.starvation) if sequences else None,
            find_protocol(ordering.order).orderer(view) == me,
        )

    def on_broadcast(self, row: MessageRow) -> None:
        queues = self._queues(row)
        if queues is not None and queues.sending is not None:
            queues.sending.enter(row)

    def on_received(self, row: MessageRow) -> None:
        queues = self._queues(row)
        if queues is None or queues.sequencing is None:
            return
        if row.position != NO_POSITION:
            queues.sequencing.remove(row)
        elif row.bytes:
            queues.sequencing.enter(row)

    def on_sent(self, row: MessageRow) -> None:
        queues = self._queues(row)
        if queues is None:
            return
        if queues.sending is not None and row.bytes:
            self._leave(row, queues.sending, "sends")
        if queues.sequencing is None:
            return
        if row.position == NO_POSITION:
            queues.sequencing.remove(row)
        else:
            self._leave(row, queues.sequencing, "orders", must_wait=queues.is_orderer)

    def _queues(self, row: MessageRow) -> _MemberQueues | None:
        queues = self._members.get(process_of(row))
        return queues if queues is not None and queues.view == view_of(row) else None

    def _leave(self, row: MessageRow, queue: _CheckedQueue, does: str, must_wait: bool = False) -> None:
        """Messages leave; `must_wait` says that only messages of this queue may."""
        process = process_of(row)
        for index, key in enumerate(keys_of(row)):
            position = row.position if row.position == NO_POSITION else row.position + index
            entry = queue.waiting.pop(key, None)
            head = queue.head()
            if entry is None:
                if must_wait:
                    summary = f"{process} {does} {message_name(key)}, which does not wait there"
                    self._wrong(row, position, summary, [key])
                continue
            if head is None:
                continue
            if next(iter(queue.waiting.values())).number < entry.number:
                self._counters.count("overtaking")
            if head.sort_key < entry.sort_key:
                summary = (
                    f"{process} {does} {message_name(key)} while {message_name(head.key)}, which is more "
                    "urgent, waits"
                )
                self._wrong(row, position, summary, [key, head.key])

    def _wrong(self, row: MessageRow, position: int, summary: str, messages: list[Key]) -> None:
        members = [process_of(row)]
        self.violated(
            summary, row.time_ns, view=view_of(row), position=position, messages=messages, members=members
        )
