"""The orderer's side of the window: nothing gets a position unless every member has granted room for it.

A message with a position can no longer be overtaken, so as much as possible should wait where priorities act.
Members therefore grant a window of messages that are ordered and not yet consumed (`Consumption`), and the
members that put messages into the order stay within what all of them have granted (`Grants`).

Where one member at a time assigns the positions, it has the whole window, and is told how many messages of
the order were consumed. Where every member sends at its own pace and no member knows the positions in
advance, each sender has a *share* of the window, and is told how many of its own messages were consumed.
"""

from collections import deque
from collections.abc import Sequence

from priocast.core.compiling import mypyc_attr
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.priority import CLASS_COUNT, CLASS_SHIFT, limits_by_class
from priocast.core.protocol import WINDOW_MAX, OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.consumption import share
from priocast.protocols.flow.frames import BatchQueue
from priocast.protocols.flow.window import WINDOW_FIRST

_CLASS_LAST = CLASS_COUNT - 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Grants:
    """How much may be put into the order: no more than every member has granted, in messages and in bytes.

    If no other member puts messages there (`alone`), a member that reports more consumed messages than that
    is at fault.
    """

    def __init__(self, view: View, options: OrderingOptions, shares: int = 1, alone: bool = True) -> None:
        self._reserved = options.prioritised
        self._alone = alone
        self._bytes_max = share(options.window_bytes, shares)
        self._consumed = dict.fromkeys(view.members, 0)
        first = limits_by_class(share(options.window or WINDOW_FIRST, shares), self._reserved)
        self._limits = dict.fromkeys(view.members, first)
        self._limit = first
        self.ordered_count = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._in_flight_bytes = 0

    def room(self, level: int) -> int:
        """How many more messages of this level may be put into the order."""
        if self._in_flight_bytes >= self._bytes_max:
            return 0
        return self._limit[min(level >> CLASS_SHIFT, _CLASS_LAST)] - self.ordered_count

    def bottleneck(self, level: int) -> ProcessId | None:
        """The member whose grant messages of this level wait for, if they have to wait."""
        if self._in_flight_bytes >= self._bytes_max:
            return min(self._consumed, key=lambda member: self._consumed[member])
        of_class = min(level >> CLASS_SHIFT, _CLASS_LAST)
        if self._limit[of_class] > self.ordered_count:
            return None
        return min(self._limits, key=lambda member: self._limits[member][of_class])

    def bottleneck_of(self, queue: BatchQueue) -> ProcessId | None:
        """The member whose grant the head of a queue waits for, if it has to wait."""
        return self.bottleneck(queue.head_level) if queue.count else None

    def bottleneck_name(self, queue: BatchQueue) -> str:
        """The name of that member, as packets carry it; empty if the queue does not wait for a grant."""
        bottleneck = self.bottleneck(queue.head_level) if queue.count else None
        return bottleneck.name if bottleneck else ""

    def consumed_by(self, member: ProcessId) -> int:
        """How many of the ordered messages a member is known to have consumed."""
        return self._consumed[member]

    def ordered(self, batch: Batch) -> None:
        """A batch was put into the order."""
        self.ordered_count += batch.count
        self._in_flight.append((self.ordered_count, len(batch.block)))
        self._in_flight_bytes += len(batch.block)

    def ordered_together(self, batches: Sequence[Batch]) -> None:
        """Batches were put into the order that the member which did so counted as one."""
        size = sum(len(batch.block) for batch in batches)
        self.ordered_count += sum(batch.count for batch in batches)
        self._in_flight.append((self.ordered_count, size))
        self._in_flight_bytes += size

    def granted(self, member: ProcessId, consumed: int, window: int) -> None:
        """A member has consumed this many messages in all and has room for `window` more."""
        if consumed < self._consumed[member] or (self._alone and consumed > self.ordered_count):
            raise PeerFault(
                f"{member} reports {consumed} messages consumed; it must be between "
                f"{self._consumed[member]}, its last report, and {self.ordered_count}, the messages ordered"
            )
        self._consumed[member] = consumed
        of_class = limits_by_class(min(window, WINDOW_MAX), self._reserved)
        self._limits[member] = tuple(consumed + limit for limit in of_class)
        self._limit = tuple(map(min, zip(*self._limits.values(), strict=True)))
        slowest = min(self._consumed.values())
        while self._in_flight and self._in_flight[0][0] <= slowest:
            self._in_flight_bytes -= self._in_flight.popleft()[1]

    @property
    def window(self) -> int:
        """How many messages may be ordered and not yet consumed in all."""
        return self._limit[-1] - min(self._consumed.values())
