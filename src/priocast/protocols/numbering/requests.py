"""Number requests: members request numbers for messages that they keep, and the window that numbers reserve.

The member that grants numbers does not have the messages. It knows how many of which level a member has
requested numbers for, and their bytes. Which message has a number it learns when the message arrives.
"""

from collections import deque
from heapq import heappop, heappush

from priocast.core.identity import ProcessId
from priocast.core.inspection import QueueInspection, queues_by_level
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.protocols.flow.grants import Grants
from priocast.protocols.numbering.packets import NumberRequest


class UnusedNumbers:
    """Consecutive numbers that were granted and not used yet."""

    __slots__ = ("count", "position")

    def __init__(self, position: int, count: int) -> None:
        self.position = position
        self.count = count

    def use(self, count: int) -> None:
        """The first of them are used."""
        self.position += count
        self.count -= count
        assert self.count >= 0


class _WaitingRequest:
    """What a member has requested and was not granted yet, and since when."""

    __slots__ = ("count", "level", "sender", "since", "size")

    def __init__(self, sender: ProcessId, request: NumberRequest, now: int) -> None:
        self.sender = sender
        self.level = request.level
        self.count = request.count
        self.size = request.size
        self.since = now


class NumberRequestQueue:
    """Requests by the sort key that the starvation policy assigns when they arrive.

    Equal keys are served first come, first served. A member's further request with the same key joins the one
    that waits, so that numbers are granted in few pieces. It does not join one that is partly served: that
    one could then stay at the head for ever.
    """

    def __init__(self, starvation: Starvation) -> None:
        self._sort_key = starvation.sort_key
        self._heap: list[tuple[int, int, _WaitingRequest]] = []
        self._unserved: dict[tuple[int, ProcessId, int], _WaitingRequest] = {}
        self._arrivals = 0
        self.count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def put(self, sender: ProcessId, request: NumberRequest, now: int) -> None:
        """A member requests numbers."""
        sort_key = self._sort_key(request.level, now)
        waiting = self._unserved.get((sort_key, sender, request.level))
        if waiting is not None:
            waiting.count += request.count
            waiting.size += request.size
        else:
            self._arrivals += 1
            waiting = _WaitingRequest(sender, request, now)
            self._unserved[sort_key, sender, request.level] = waiting
            heappush(self._heap, (sort_key, self._arrivals, waiting))
        self.count += request.count

    def head(self) -> tuple[ProcessId, int]:
        """The member whose request is next, and the level of the request."""
        assert self._heap, "there is no request"
        waiting = self._heap[0][2]
        return waiting.sender, waiting.level

    def take(self, count_max: int, bytes_left: int) -> tuple[int, int]:
        """Serve the next request as far as there is room; return how many numbers, for how many bytes.

        If only a few bytes are left, there is room for one message.
        """
        assert self._heap and count_max > 0
        sort_key, _, waiting = self._heap[0]
        if self._unserved.get(name := (sort_key, waiting.sender, waiting.level)) is waiting:
            del self._unserved[name]
        count = min(count_max, waiting.count)
        if waiting.size > bytes_left:
            count = min(count, max(1, waiting.count * bytes_left // waiting.size))
        size = waiting.size * count // waiting.count
        waiting.count -= count
        waiting.size -= size
        if not waiting.count:
            heappop(self._heap)
        self.count -= count
        return count, size

    def take_whole(self) -> tuple[ProcessId, NumberRequest, int]:
        """Remove the next request: the member, what it requests, and since when it has waited."""
        waiting = self._heap[0][2]
        count, size = self.take(waiting.count, waiting.size)
        return waiting.sender, NumberRequest(waiting.level, count, size), waiting.since

    def inspect(self, now: int) -> list[QueueInspection]:
        """What is requested by level, the highest first."""
        return queues_by_level(((each.level, each.count, each.since) for _, _, each in self._heap), now)


class NumberReservations(Grants):
    """Grants for numbers: a number counts when it is granted, with the bytes requested until it is used.

    A sender may use a number for a longer message than it requested the number for. So more bytes may be in
    flight than were reserved, by as much as the messages for which it had not requested numbers yet. Once
    they are ordered, they count as what they are.
    """

    def __init__(self, view: View, options: OrderingOptions, alone: bool = True) -> None:
        super().__init__(view, options, alone=alone)
        self._reservations: deque[tuple[int, int]] = deque()
        self._used_count = 0

    @property
    def bytes_left(self) -> int:
        """How many more bytes there is room for."""
        return self._bytes_max - self._in_flight_bytes

    def reserve(self, count: int, size: int) -> None:
        """The next numbers are granted for messages of this size."""
        self.ordered_count += count
        self._reservations.append((self.ordered_count, size))
        self._in_flight_bytes += size

    def ordered(self, batch: Batch) -> None:
        """The next numbers arrived with their messages; a reservation ends when all its numbers are used."""
        self._used_count += batch.count
        self._in_flight.append((self._used_count, len(batch.block)))
        self._in_flight_bytes += len(batch.block)
        while self._reservations and self._reservations[0][0] <= self._used_count:
            self._in_flight_bytes -= self._reservations.popleft()[1]
