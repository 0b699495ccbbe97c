"""The application at one member: it broadcasts what it wishes to and consumes one message at a time.

Under back-pressure it waits: a wish for which there is no room stays, in a lane of its class, until there
is. Nothing is lost, and an urgent wish does not wait behind a routine one.
"""

from collections import deque
from collections.abc import Callable

from priocast.core.message import Message
from priocast.core.priority import CLASS_COUNT, class_of
from priocast.member import Member
from priocast.simulation.counters import Counters
from priocast.simulation.workload import Wish

Inspect = Callable[[Message, int, int], None]


class Application:
    """Wishes in, messages out; `inspect` sees every message that is consumed, its position and the time."""

    def __init__(
        self,
        member: Member,
        wishes: list[Wish],
        prioritised: bool,
        consume_ns: int,
        inspect: Inspect,
        counters: Counters,
    ) -> None:
        self._member = member
        self._wishes = deque(wishes)
        self._prioritised = prioritised
        self._lanes: list[deque[Wish]] = [deque() for _ in range(CLASS_COUNT)]
        self._consume_ns = consume_ns
        self._free_at = 0
        self._inspect = inspect
        self._counters = counters

    @property
    def due(self) -> int | None:
        """When the application has something to do next; None if only others can change that."""
        consume_at = self._free_at if self._member.head() is not None else None
        if not self._wishes:
            return consume_at
        wish_at = self._wishes[0].time
        return wish_at if consume_at is None else min(wish_at, consume_at)

    def broadcast(self, now: int) -> int:
        """Broadcast what is due and has room; return how many messages that were."""
        while self._wishes and self._wishes[0].time <= now:
            wish = self._wishes.popleft()
            self._lanes[class_of(wish.priority) if self._prioritised else 0].append(wish)
        count = 0
        for lane in reversed(self._lanes):
            while lane and self._member.room(lane[0].priority) > 0:
                wish = lane.popleft()
                self._member.broadcast(wish.payload, wish.priority)
                count += 1
            self._counters.room_waits += bool(lane)
        self._counters.broadcasts += count
        return count

    def consume(self, now: int) -> int:
        """Take messages while there is one and the last one is dealt with; return how many."""
        count = 0
        while now >= self._free_at and (head := self._member.head()) is not None:
            index = head.taken
            self._inspect(head.message(index), head.position + index, now)
            self._member.consume(1, now)
            self._free_at = now + self._consume_ns
            count += 1
        self._counters.deliveries += count
        return count
