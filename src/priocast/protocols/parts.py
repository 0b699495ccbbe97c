"""Parts: priorities over any other order, which is divided into parts that are sorted by priority.

The order below is plain: first in, first out over all levels. A part waits until it ends; then all of it goes
to the application, the most urgent messages first. A part of `time-parts` ends `part_ms` after its first
message was ordered, one of `count-parts` when it has `part_count` messages.

Gives: whatever the order below gives in its plain form, but FIFO among equals only; Priority within a part;
    Bounded overtaking: nothing overtakes a message of an earlier part, so a message is overtaken by less than
    `part_count` others, or by those that are ordered until `part_ms` have passed and the end is ordered.
Costs: those of the order below, and the wait for the end of the part. `time-parts`: one control message a
    part. `count-parts`: none, unless fewer than `part_count` messages arrive in `part_ms`.
Orders: the order below, and within a part every member by itself; the coordinator ends the parts.
Assumes: what the order below assumes.
Priorities act: where a part is delivered (priority delivering over an existing total order). The starvation
    policy has no effect: the parts are the bound.
Reference: the techniques paper, sections 8 and 9.
Diverges: the end of a time part is sent in band: the coordinator broadcasts it through the order below,
    and it ends the part at the same position everywhere. A timer at each member, as in the protocol of
    section 8, lets members end a part at different positions, and they deliver in different orders. A
    control message overtakes the messages that wait to be ordered below, and names the position up to
    which parts end: a part that began later continues. An incomplete count part is ended in band, too, or
    its messages would wait for others that may never arrive.
"""

from collections import deque
from typing import ClassVar

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection, QueueInspection
from priocast.core.message import CONTROL, Batch, OrderedBatch, pack
from priocast.core.protocol import (
    Broadcast,
    Consume,
    Input,
    LinkBlocked,
    LinkCleared,
    OrderingOptions,
    Received,
    TimerFired,
    Turn,
)
from priocast.core.view import View
from priocast.protocols.flow.ordering_protocol import OrderingProtocol

PART_COUNT_MAX = 65_536
PARTS_WAITING_MAX = 2
_PART_TIMER = "end of a part"
_DIGITS_MAX = 20
_MILLISECOND = 1_000_000


class _OpenPart:
    """Messages that wait for the end of their part, in the order below; the first has `position` there."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self.batches: list[Batch] = []
        self.position = 0
        self.count = 0
        self.bytes = 0

    def add(self, ordered_batch: OrderedBatch, taken: int) -> tuple[int, bool]:
        """Add the next messages of an ordered batch; return how many, and whether the part ends."""
        if ordered_batch.batch.level == CONTROL:
            return 1, bool(self.batches) and self.position < _end_position(ordered_batch.payloads[taken])
        if not self.batches:
            self.position = ordered_batch.position + taken
        batch = ordered_batch.cut(taken, min(ordered_batch.batch.count - taken, self._count_max - self.count))
        self.batches.append(batch)
        self.count += batch.count
        self.bytes += len(batch.block)
        return batch.count, self.count == self._count_max

    def end(self) -> list[Batch]:
        """Remove and return all, the most urgent first; equally urgent messages stay first in, first out."""
        batches, self.batches = self.batches, []
        self.count = self.bytes = 0
        return sorted(batches, key=lambda batch: batch.urgency, reverse=True)

    def after(self, ordered_batches: list[OrderedBatch]) -> list[Batch]:
        """What would wait here if these had been added, too."""
        part = _OpenPart(self._count_max)
        part.batches, part.position, part.count = self.batches.copy(), self.position, self.count
        for ordered_batch in ordered_batches:
            taken = ordered_batch.taken
            while taken < ordered_batch.batch.count:
                count, ends = part.add(ordered_batch, taken)
                taken += count
                if ends:
                    part.end()
        return part.batches


class Parts(OrderingProtocol):
    """A layer over `INNER`; without priorities there is nothing to add, and it is the inner protocol itself.

    A message has no position until its part has ended: when the view ends, what is in the open part goes back
    to its sender. What is added to a part counts as consumed below, or a full window would prevent the end of
    the part from being ordered. While two parts that have ended wait for the application, nothing is added.
    """

    LAYER: ClassVar[str]
    INNER: ClassVar[type[OrderingProtocol]]
    PRIORITIES_ACT = "delivering"
    SENDS_BY_PRIORITY = False

    def __new__(  # type: ignore[misc]  # a plain one is the inner protocol itself
        cls, me: ProcessId, view: View, options: OrderingOptions, position: int = 0
    ) -> OrderingProtocol:
        return super().__new__(cls) if options.prioritised else cls.INNER(me, view, options, position)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        plain = msgspec.structs.replace(options, prioritised=False)
        self.inner = self.INNER(me, view, plain, position)
        self.outgoing = self.inner.outgoing
        self._part = _OpenPart(self._count_max())
        self._part_ends: deque[int] = deque()
        self._opened_at = 0
        # coordinator
        self._part_ns = int(options.part_ms * _MILLISECOND)
        self._timer_at: int | None = None
        self._requested_at = 0
        self._requested_until = position
        self._request_count = 0

    def _count_max(self) -> int:
        """The number of messages that ends a part."""
        return PART_COUNT_MAX

    @property
    def backlog(self) -> int:
        return self.inner.backlog + self._part.count

    @property
    def idle(self) -> bool:
        return self.inner.idle and not self._part.after(self.inner.unconsumed())

    @property
    def settled(self) -> bool:
        waiting = self._part.after(self.inner.unconsumed())
        return self.inner.settled and all(batch.sender != self.me for batch in waiting)

    def inspect(self, now: int) -> ProtocolInspection:
        inner = self.inner.inspect(now)

        def queues() -> list[QueueInspection]:
            found = {level: (count, age) for level, count, age in inner.queues if level != CONTROL}
            for batch in self._part.batches:
                count, _ = found.get(batch.level, (0, 0))
                found[batch.level] = (count + batch.count, now - self._opened_at)
            return [QueueInspection(level, *found[level]) for level in sorted(found, reverse=True)]

        return msgspec.structs.replace(super().inspect(now), queues_of=queues, bottleneck=inner.bottleneck)

    def close(self) -> None:
        self.inner.close()
        self._take_all()

    def unconsumed(self) -> list[OrderedBatch]:
        self._take_all()
        return super().unconsumed()

    def unordered(self) -> list[Batch]:
        self._take_all()
        below = [batch for batch in self.inner.unordered() if batch.level != CONTROL]
        return [batch for batch in self._part.batches if batch.sender == self.me] + below

    # The order below

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        self._step_inner(event, now)

    def on_received(self, event: Received, now: int) -> None:
        self._step_inner(event, now)

    def on_turn(self, event: Turn, now: int) -> None:
        self._step_inner(event, now)

    def on_timer(self, event: TimerFired, now: int) -> None:
        if event.name == _PART_TIMER:
            self._on_part_timer(now)
        else:
            self._step_inner(event, now)

    def _on_link_blocked(self, event: LinkBlocked, now: int) -> None:
        self._step_inner(event, now)

    def _on_link_cleared(self, event: LinkCleared, now: int) -> None:
        self._step_inner(event, now)

    def _step_inner(self, event: Input, now: int) -> None:
        self._outputs += self.inner.step(event, now)
        self._take(now)

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        head = self.head()
        reached = head.position + head.taken if head else self.position_next
        while self._part_ends and self._part_ends[0] <= reached:
            self._part_ends.popleft()
        self._take(now)

    # Destination

    def _take(self, now: int) -> None:
        """Take what is next in the order below, unless enough waits for the application."""
        while len(self._part_ends) < PARTS_WAITING_MAX and (ordered_batch := self.inner.head()) is not None:
            self._take_next(ordered_batch, now)
        if self.me == self.view.coordinator:
            self._set_timer(now)

    def _take_all(self) -> None:
        """The view is over: take everything from the order below, however much waits."""
        while (ordered_batch := self.inner.head()) is not None:
            self._take_next(ordered_batch, self._opened_at)

    def _take_next(self, ordered_batch: OrderedBatch, now: int) -> None:
        """Move messages from the order below to the open part; if it ends, give them positions."""
        if not self._part.batches:
            self._opened_at = now
        count, ends = self._part.add(ordered_batch, ordered_batch.taken)
        self._dependencies = ordered_batch.dependencies
        self._outputs += self.inner.step(Consume(count), now)
        if ends:
            for batch in self._part.end():
                self.queue_ordered(batch)
            self._part_ends.append(self.position_next)

    # Coordinator

    def _set_timer(self, now: int) -> None:
        """Run a timer while messages wait for an end of their part that was not requested yet."""
        if not self._lacks_request():
            return
        due_at = now if self._is_large() else max(self._opened_at, self._requested_at) + self._part_ns
        if not self._part.batches:
            due_at = now + self._part_ns
        if self._timer_at is None or due_at < self._timer_at:
            self._timer_at = due_at
            self.set_timer(_PART_TIMER, due_at)

    def _on_part_timer(self, now: int) -> None:
        """Request the end of the open part in band, unless it was opened only recently."""
        self._timer_at = None
        is_recent = self._part.batches and now < self._opened_at + self._part_ns and not self._is_large()
        if self._lacks_request() and not is_recent:
            self._requested_at = now
            self._requested_until = self.inner.position_next + 1
            request = pack(self.me, CONTROL, self._request_count, [b"%d" % self.inner.position_next])
            self._request_count += 1
            self._outputs += self.inner.step(Broadcast(request), now)
        self._set_timer(now)

    def _lacks_request(self) -> bool:
        """Whether messages wait that were ordered below after the last request."""
        waits = bool(self._part.batches) or self.inner.head() is not None
        return waits and self.inner.position_next > self._requested_until

    def _is_large(self) -> bool:
        """Whether the open part is too large to wait for the timer."""
        return self._part.bytes >= self.options.window_bytes and self._requested_at < self._opened_at


class TimeParts(Parts):
    """Parts of limited duration (`part_ms`)."""

    LAYER = "time-parts"


class CountParts(Parts):
    """Parts of a fixed number of messages (`part_count`)."""

    LAYER = "count-parts"

    def _count_max(self) -> int:
        return self.options.part_count


def layered(layer: type[Parts], inner: type[OrderingProtocol]) -> type[OrderingProtocol]:
    """The class of the layer over a protocol; always the same one."""
    known = _LAYERED.get((layer, inner))
    if known is not None:
        return known
    fields = {
        "__doc__": layer.__doc__,
        "__module__": layer.__module__,
        "INNER": inner,
        "NAME": f"{layer.LAYER}/{inner.NAME}",
        "PACKETS": inner.PACKETS,
        "PARTITIONABLE": inner.PARTITIONABLE,
    }
    layered_class = type(f"{layer.__name__}Over{inner.__name__}", (layer,), fields)
    assert issubclass(layered_class, OrderingProtocol)
    _LAYERED[layer, inner] = layered_class
    return layered_class


_LAYERED: dict[tuple[type[Parts], type[OrderingProtocol]], type[OrderingProtocol]] = {}


def _end_position(payload: bytes) -> int:
    """A control message ends a part that began before this position of the order below."""
    return int(payload) if payload.isdigit() and len(payload) <= _DIGITS_MAX else 0
