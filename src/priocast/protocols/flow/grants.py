"""Flow by consumption: nothing gets a place, or is sent to get one, unless every member has room for it.

What is ordered can no longer be overtaken, so as much as possible should wait where priorities act. Members
therefore *grant* a window of messages that have a place and were not consumed yet (`Consumption`), and
whoever puts messages into the order stays within what all of them have granted (`Grants`).

Where one member at a time gives out the places, it has the whole window, and is told how many messages of
the order were consumed. Where every member sends by itself and nobody knows the places beforehand, each
sender has a *share* of the window, and is told how many of its own messages were consumed.
"""

from collections import deque
from collections.abc import Callable
from typing import Annotated, Protocol

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import NAME_LENGTH_MAX, ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch, Reference
from priocast.core.priority import class_of, limits_by_class
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet
from priocast.core.view import View
from priocast.protocols.flow.window import WINDOW_FIRST, ConsumptionWindow

FRAME_BATCHES_MAX = 1024
FRAMES_PER_TURN = 8
_MILLISECOND = 1_000_000
_SIGN_OF_LIFE_NS = 500 * _MILLISECOND

Batches = Annotated[tuple[Batch, ...], msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)]
References = Annotated[tuple[Reference, ...], msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)]
BottleneckName = Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]


class Consumed(Packet, frozen=True, tag="consumed"):
    """From a destination: my application took `total` of your messages; I grant `window` more."""

    total: Annotated[int, msgspec.Meta(ge=0)]
    window: Annotated[int, msgspec.Meta(ge=1)]


def share(limit: int, shares: int) -> int:
    """One of so many equal shares of a limit, but at least 1."""
    return max(1, limit // shares)


class Grants:
    """What may be put into the order: no more than every member has granted, in messages and in bytes.

    Who is `alone` in putting messages there knows that nobody can have consumed more than that.
    """

    def __init__(self, view: View, options: OrderingOptions, shares: int = 1, alone: bool = True) -> None:
        self._reserved = options.prioritised
        self._alone = alone
        self._bytes_max = share(options.window_bytes, shares)
        self._consumed = dict.fromkeys(view.members, 0)
        first = limits_by_class(share(options.window or WINDOW_FIRST, shares), self._reserved)
        self._limits = dict.fromkeys(view.members, first)
        self._limit = first
        self._placed = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._in_flight_bytes = 0

    def of_level(self, level: int) -> int:
        """How many more messages of this level may be put into the order."""
        if self._in_flight_bytes >= self._bytes_max:
            return 0
        return self._limit[class_of(level)] - self._placed

    def bottleneck(self, level: int) -> ProcessId | None:
        """The member for whose grant messages of this level wait, if they have to wait."""
        if self._in_flight_bytes >= self._bytes_max:
            return min(self._consumed, key=lambda member: self._consumed[member])
        of_class = class_of(level)
        if self._limit[of_class] > self._placed:
            return None
        return min(self._limits, key=lambda member: self._limits[member][of_class])

    @property
    def placed_count(self) -> int:
        """How many messages were put into the order so far."""
        return self._placed

    def consumed_by(self, member: ProcessId) -> int:
        """How many of them a member is known to have consumed."""
        return self._consumed[member]

    def placed(self, batch: Batch) -> None:
        """A batch is under way."""
        self._placed += batch.count
        self._in_flight.append((self._placed, len(batch.block)))
        self._in_flight_bytes += len(batch.block)

    def granted(self, member: ProcessId, consumed: int, window: int) -> None:
        """A member has consumed so many messages and has room for so many more."""
        if consumed < self._consumed[member] or (self._alone and consumed > self._placed):
            raise PeerFault(f"{member} reports {consumed} messages consumed, which cannot be")
        self._consumed[member] = consumed
        of_class = limits_by_class(min(window, WINDOW_MAX), self._reserved)
        self._limits[member] = tuple(consumed + limit for limit in of_class)
        self._limit = tuple(map(min, zip(*self._limits.values(), strict=True)))
        slowest = min(self._consumed.values())
        while self._in_flight and self._in_flight[0][0] <= slowest:
            self._in_flight_bytes -= self._in_flight.popleft()[1]


class Consumption:
    """What one member's application consumes, and what to tell those who put messages into the order.

    Each of them (a `source`) has its own account and, if there are several, its share of the window.
    """

    def __init__(self, options: OrderingOptions, shares: int = 1) -> None:
        self._window = ConsumptionWindow(options.window, int(options.window_ms * _MILLISECOND))
        self._shares = shares
        self._bytes_max = share(options.window_bytes, shares)
        self._accounts: dict[ProcessId, _Account] = {}

    def announced(self, source: ProcessId, count: int, size: int) -> None:
        """A source has put messages of this size into the order, which it counts as one."""
        account = self._accounts.get(source)
        if account is None:
            account = self._accounts[source] = _Account(share(self._window.size, self._shares))
        account.announced += count
        account.waiting.append((account.announced, size))

    def queued(self, count: int, held: bool) -> None:
        """Messages wait for the application; `held` says that more of them wait for our grant."""
        self._window.queued(count, held)

    def consumed(self, source: ProcessId, count: int, now: int) -> Consumed | None:
        """The application took so many messages of a source; return what to report to it, if it is time.

        The source waits for messages or for bytes, so a quarter of either window is worth a report. If it
        waits for this very member, it should see that the application goes on, however slow it is.
        """
        self._window.consumed(count, now)
        account = self._accounts[source]
        account.consumed += count
        while account.waiting and account.waiting[0][0] <= account.consumed:
            account.unreported_bytes += account.waiting.popleft()[1]
        is_worth_it = (
            4 * (account.consumed - account.reported) >= account.granted
            or 4 * account.unreported_bytes >= self._bytes_max
            or (self._window.held and now - account.reported_at >= _SIGN_OF_LIFE_NS)
        )
        if not is_worth_it:
            return None
        account.reported_at = now
        account.reported, account.granted = account.consumed, share(self._window.grant(), self._shares)
        account.unreported_bytes = 0
        return Consumed(account.reported, account.granted)


class _Account:
    """What one source has announced, what was consumed of it here and what was reported.

    Source and destination must free bytes at the same counts, or the one waits for what the other does not
    find worth a report: so a destination counts the very pieces that the source counts.
    """

    __slots__ = ("announced", "consumed", "granted", "reported", "reported_at", "unreported_bytes", "waiting")

    def __init__(self, granted: int) -> None:
        self.granted = granted
        self.announced = 0
        self.consumed = 0
        self.reported = 0
        self.reported_at = 0
        self.unreported_bytes = 0
        self.waiting: deque[tuple[int, int]] = deque()


class Queue(Protocol):
    """What gives out batches, one after the other."""

    def __bool__(self) -> bool: ...

    def head_level(self) -> int: ...

    def take(self, count_max: int) -> Batch: ...


def fill_frame(
    queue: Queue,
    room: Callable[[int], int],
    taken: Callable[[Batch], None],
    batches_max: int = FRAME_BATCHES_MAX,
) -> tuple[Batch, ...]:
    """Take what is next in the queue and has room, up to a frame's worth."""
    batches: list[Batch] = []
    size = 0
    while queue and size < BATCH_BYTES_CUT and len(batches) < batches_max:
        count = room(queue.head_level())
        if count <= 0:
            break
        batch = queue.take(count)
        taken(batch)
        batches.append(batch)
        size += len(batch.block)
    return tuple(batches)
