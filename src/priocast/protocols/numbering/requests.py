"""Number requests: members request numbers for messages that they keep; served by priority, within the window.

Who gives out numbers does not have the messages. It knows how many of which level a member has asked for and
how many bytes they are, and which number a message has when the message comes, number and all.
"""

from collections import deque
from heapq import heappop, heappush
from typing import Annotated

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.protocols.flow.grants import Grants


class NumberRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Numbers for so many messages that count for one level, and their bytes together."""

    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    count: Annotated[int, msgspec.Meta(ge=1)]
    size: Annotated[int, msgspec.Meta(ge=0)]

    def __str__(self) -> str:
        return f"{self.count} of level {self.level}, {self.size} bytes"


class _WaitingRequest:
    """What a member asked for and has not got yet, since when."""

    __slots__ = ("count", "level", "sender", "since", "size")

    def __init__(self, sender: ProcessId, want: NumberRequest, now: int) -> None:
        self.sender = sender
        self.level = want.level
        self.count = want.count
        self.size = want.size
        self.since = now


class NumberRequestQueue:
    """What members ask for, by the rank that the starvation policy gives it when it comes.

    Equal ranks are served first come, first served. Who asks again for the same joins its ask that waits, so
    that numbers are given out in few pieces; but not one that is being served, or it could go on for ever.
    """

    def __init__(self, starvation: Starvation) -> None:
        self._sort_key = starvation.sort_key
        self._heap: list[tuple[int, int, _WaitingRequest]] = []
        self._unserved: dict[tuple[int, ProcessId, int], _WaitingRequest] = {}
        self._arrivals = 0
        self.count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def put(self, sender: ProcessId, want: NumberRequest, now: int) -> None:
        """A member asks for numbers."""
        rank = self._sort_key(want.level, now)
        ask = self._unserved.get((rank, sender, want.level))
        if ask is not None:
            ask.count += want.count
            ask.size += want.size
        else:
            self._arrivals += 1
            self._unserved[rank, sender, want.level] = ask = _WaitingRequest(sender, want, now)
            heappush(self._heap, (rank, self._arrivals, ask))
        self.count += want.count

    def head(self) -> tuple[ProcessId, int]:
        """Who is next to get numbers, and for which level."""
        assert self._heap, "nobody asks"
        ask = self._heap[0][2]
        return ask.sender, ask.level

    def take(self, count_max: int, bytes_left: int) -> tuple[int, int]:
        """Serve who is next, as far as there is room; return how many numbers, for how many bytes.

        Where only a few bytes are left, one message has room.
        """
        assert self._heap and count_max > 0
        rank, _, ask = self._heap[0]
        if self._unserved.get(name := (rank, ask.sender, ask.level)) is ask:
            del self._unserved[name]
        count = min(count_max, ask.count)
        if ask.size > bytes_left:
            count = min(count, max(1, ask.count * bytes_left // ask.size))
        size = ask.size * count // ask.count
        ask.count -= count
        ask.size -= size
        if not ask.count:
            heappop(self._heap)
        self.count -= count
        return count, size

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        """What is asked for by level, the highest first: level, messages, time of the oldest ask (ns)."""
        by_level: dict[int, tuple[int, int]] = {}
        for _, _, ask in self._heap:
            count, since = by_level.get(ask.level, (0, now))
            by_level[ask.level] = count + ask.count, min(since, ask.since)
        return [(level, by_level[level][0], now - by_level[level][1]) for level in sorted(by_level)[::-1]]


class NumberReservations(Grants):
    """Grants for numbers: they count when they are given out, and their bytes as asked for, until they come.

    A sender may use a number for a longer message than it asked for. So the bytes on their way may be more
    than were reserve, by as much as its messages are that it had not asked for when the number was given
    out; from when they are placed they count as what they are.
    """

    def __init__(self, view: View, options: OrderingOptions) -> None:
        super().__init__(view, options)
        self._reservations: deque[tuple[int, int]] = deque()
        self._came = 0

    @property
    def bytes_left(self) -> int:
        """How many more bytes there is room for."""
        return self._bytes_max - self._in_flight_bytes

    def reserve(self, count: int, size: int) -> None:
        """So many numbers, the next ones, are given out for messages of so many bytes."""
        self._placed += count
        self._reservations.append((self._placed, size))
        self._in_flight_bytes += size

    def placed(self, batch: Batch) -> None:
        """The next numbers came with their messages; a promise is kept when all of its numbers have come."""
        self._came += batch.count
        self._in_flight.append((self._came, len(batch.block)))
        self._in_flight_bytes += len(batch.block)
        while self._reservations and self._reservations[0][0] <= self._came:
            self._in_flight_bytes -= self._reservations.popleft()[1]
