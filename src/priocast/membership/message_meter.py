"""Counts the messages of a member, for metrics and for those who watch the order.

A batch costs the same as a message: it is counted whole. The delivery time of a message is the time from its
broadcast to its delivery at its own sender, by one clock, so it is known for the member's own messages only.
While nobody watches, no single delivery is kept.
"""

from collections import Counter, deque

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.time_histogram import TimeHistogram
from priocast.membership.delivery_sample import UNKNOWN_WAIT, DeliverySample

RECENT_MAX = 1024
_AWAITED_MAX = 1 << 16


class Traffic:
    """How many messages of one priority there were, and their bytes."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0


class MessageMeter:
    """The counts of one member, over all its incarnations.

    `broadcast` and `delivered` count by priority, `delivery_times` are those of own messages by priority.
    `recent` holds the last deliveries while somebody watches, and is None otherwise.
    """

    def __init__(self) -> None:
        self.broadcast: dict[int, Traffic] = {}
        self.delivered: dict[int, Traffic] = {}
        self.delivery_times: dict[int, TimeHistogram] = {}
        self.recent: deque[DeliverySample] | None = None
        self._me: ProcessId | None = None
        self._awaited: dict[int, deque[tuple[int, int, int]]] = {}
        self._next_own: dict[int, int] = {}

    def on_incarnation(self, me: ProcessId) -> None:
        """A new incarnation begins; its messages are numbered from 0 again."""
        self._me = me
        self._awaited, self._next_own = {}, {}

    def watch(self, watched: bool) -> None:
        """Begin or end to keep the last deliveries."""
        self.recent = deque(maxlen=RECENT_MAX) if watched else None

    def on_broadcast(self, batch: Batch, now: int) -> None:
        """The application broadcast a batch."""
        level = batch.level
        if batch.priorities:
            _count_each(self.broadcast, batch.priorities, len(batch.block))
        else:
            _count(self.broadcast, level, batch.count, len(batch.block))
        if batch.scope.to and self._me is not None and not batch.scope.includes(self._me):
            return  # it is not delivered here
        awaited = self._awaited.get(level)
        if awaited is None:
            awaited = self._awaited[level] = deque(maxlen=_AWAITED_MAX)
        awaited.append((batch.first, batch.first + batch.count, now))

    def on_delivered(self, ordered: OrderedBatch, count: int, now: int) -> None:
        """The application took the next `count` messages of a batch."""
        batch, taken = ordered.batch, ordered.taken
        size = len(batch.block) * count // batch.count
        priorities = batch.priorities[taken : taken + count]
        if priorities:
            _count_each(self.delivered, priorities, size)
        else:
            _count(self.delivered, batch.level, count, size)
        sent_at = None
        if batch.sender == self._me:
            sent_at = self._time_own(batch.level, batch.first + taken, count, priorities, now)
        if self.recent is not None:
            self._keep(ordered, count, sent_at, now)

    def _time_own(self, level: int, first: int, count: int, priorities: bytes, now: int) -> int | None:
        """Count the delivery times of own messages; return when the first of them was broadcast."""
        awaited, end, start, sent_at = self._awaited.get(level), first + count, first, None
        self._next_own[level] = end
        while awaited:
            _, batch_end, at = awaited[0]
            if batch_end > start:
                sent_at = at if sent_at is None else sent_at
                stop = min(batch_end, end)
                self._add_times(level, priorities[start - first : stop - first], stop - start, now - at)
                start = stop
            if batch_end > end:
                break
            awaited.popleft()
        return sent_at

    def _add_times(self, level: int, priorities: bytes, count: int, waited_ns: int) -> None:
        for priority, number in Counter(priorities).items() if priorities else ((level, count),):
            times = self.delivery_times.get(priority)
            if times is None:
                times = self.delivery_times[priority] = TimeHistogram()
            times.add(waited_ns, number)

    def _keep(self, ordered: OrderedBatch, count: int, sent_at: int | None, now: int) -> None:
        """Remember a delivery for those who watch; the parts of a batch with priorities one by one."""
        assert self.recent is not None
        batch, taken = ordered.batch, ordered.taken
        waited = UNKNOWN_WAIT if sent_at is None else now - sent_at
        overtaken = 0 if sent_at is None or batch.priorities else self._overtaken(batch.level, sent_at)
        parts = [(taken, count)] if not batch.priorities else [(taken + each, 1) for each in range(count)]
        for index, number in parts[-RECENT_MAX:]:
            position, priority = ordered.position + index, batch.priority_of(index)
            sample = (now, position, number, priority, batch.sender.name, waited, overtaken)
            self.recent.append(DeliverySample(*sample))

    def _overtaken(self, level: int, sent_at: int) -> int:
        """How many own messages of lower levels that were broadcast before this time still wait."""
        found = 0
        for lower, awaited in self._awaited.items():
            if lower < level and awaited and awaited[0][2] < sent_at:
                first = max(awaited[0][0], self._next_own.get(lower, 0))
                found += _end_before(awaited, sent_at) - first
        return found


def _end_before(awaited: deque[tuple[int, int, int]], sent_at: int) -> int:
    """The number after the last message that was broadcast before this time."""
    low, high = 0, len(awaited)
    while low < high:
        middle = (low + high) // 2
        if awaited[middle][2] < sent_at:
            low = middle + 1
        else:
            high = middle
    return awaited[low - 1][1]


def _count(traffic: dict[int, Traffic], priority: int, messages: int, size: int) -> None:
    found = traffic.get(priority)
    if found is None:
        found = traffic[priority] = Traffic()
    found.messages += messages
    found.bytes += size


def _count_each(traffic: dict[int, Traffic], priorities: bytes, size: int) -> None:
    """Count messages of several priorities; each has the same share of the bytes."""
    for priority, messages in Counter(priorities).items():
        _count(traffic, priority, messages, size * messages // len(priorities))
