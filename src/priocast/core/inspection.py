"""What status, metrics and slow-member detection see of a protocol, as one value."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.stall import Stalls


class QueueInspection(NamedTuple):
    """The messages of one priority that wait in a queue, and how long the oldest has waited."""

    priority: int
    messages: int
    oldest_wait_ns: int


def queues_by_level(waiting: Iterable[tuple[int, int, int]], now: int) -> list[QueueInspection]:
    """Add up what waits, given as level, count and time of entering, by level, the highest first."""
    by_level: dict[int, tuple[int, int]] = {}
    for level, count, since in waiting:
        count_before, oldest = by_level.get(level, (0, now))
        by_level[level] = count_before + count, min(oldest, since)
    return [
        QueueInspection(level, count, now - oldest)
        for level, (count, oldest) in sorted(by_level.items(), reverse=True)
    ]


class SlotInspection(NamedTuple):
    """How an order that shares slots among its senders does so: a distribution, and its weights by rank."""

    distribution: str
    weights: tuple[int, ...]


class ProtocolInspection(msgspec.Struct, frozen=True):
    """A protocol at one time.

    `backlog`: messages that wait at this member for a position; `queues`: the same by priority, the highest
    first, where a queue of this member decides. `unconsumed`: messages that have a position and wait for the
    application. `bottleneck`: the member that this one waits for before it can order more.
    `stall_reason`: why the application has to wait although messages are queued. `stalls` counts these waits,
    including the current one, which has lasted for `stalled_ns`. `slots`: how the slots are shared, if there
    are any.
    """

    backlog: int
    queues_of: Callable[[], list[QueueInspection]]
    unconsumed: int
    stalls: Stalls
    stalled_ns: int
    bottleneck: ProcessId | None = None
    stall_reason: str = ""
    slots: SlotInspection | None = None

    @property
    def queues(self) -> list[QueueInspection]:
        """What waits, by priority. It is counted only here: that takes milliseconds if thousands wait."""
        return self.queues_of()
