"""The application at one member: it broadcasts what it wishes to and consumes one message at a time.

Under back-pressure it waits: a wish for which there is no room stays, in a lane of its class, until there
is. Nothing is lost, and an urgent wish does not wait behind a routine one.

What it consumes becomes its state: which wishes were fulfilled, and a hash of all that was for everybody, in
its order. Members whose states are equal have seen the same.
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from priocast.core.message import Message, OrderedBatch
from priocast.core.priority import CLASS_COUNT, class_of
from priocast.member import Member
from priocast.membership.stream import StateRestore
from priocast.simulation.counters import Counters
from priocast.simulation.workload import PlannedBroadcast, name_in

Inspect = Callable[[Message, int, "ApplicationState", int], None]


class ApplicationState(msgspec.Struct):
    """What an application knows: it is what a new member takes over."""

    digest: bytes = b""
    wishes: set[str] = set()

    def take(self, message: Message, position: int) -> None:
        """A message was consumed; those that are not for all make no difference between members."""
        if not message.scope.to:
            text = f"{position} {message.id}".encode()
            self.digest = blake2b(self.digest + text, digest_size=16).digest()
            self.wishes.add(name_in(message.payload))

    def save(self, padding: int) -> bytes:
        """The state as bytes, with so many more."""
        return msgspec.msgpack.encode((self.digest, sorted(self.wishes), bytes(padding)))


def load(data: bytes) -> ApplicationState:
    """The state that was saved."""
    digest, wishes, _ = msgspec.msgpack.decode(data, type=tuple[bytes, list[str], bytes])
    return ApplicationState(digest, set(wishes))


class BroadcastPlan:
    """What one process's application still has to broadcast; `handed` has what its present memory holds."""

    def __init__(self, wishes: list[PlannedBroadcast]) -> None:
        self._coming = deque(wishes)
        self._lanes: list[deque[PlannedBroadcast]] = [deque() for _ in range(CLASS_COUNT)]
        self.handed: list[PlannedBroadcast] = []

    @property
    def next_at(self) -> int | None:
        """When there is something new to broadcast."""
        return self._coming[0].time if self._coming else None

    @property
    def done(self) -> bool:
        """Whether everything was broadcast."""
        return not self._coming and not any(self._lanes)

    def hand_over(self, member: Member, now: int) -> tuple[int, bool]:
        """Broadcast what is due and has room; return how many messages that were, and if any had to wait."""
        while self._coming and self._coming[0].time <= now:
            wish = self._coming.popleft()
            self._lanes[class_of(wish.priority)].append(wish)
        count, waiting = 0, False
        for lane in reversed(self._lanes):
            while lane and member.room(lane[0].priority) > 0:
                wish = lane.popleft()
                member.broadcast_many([wish.payload], wish.priority, wish.scope)
                self.handed.append(wish)
                count += 1
            waiting |= bool(lane)
        return count, waiting


class SimulatedApplication:
    """Wishes in, messages out; `inspect` sees every message before it is consumed, and where."""

    def __init__(
        self,
        member: Member,
        errands: BroadcastPlan,
        consume_ns: int,
        state_bytes: int,
        inspect: Inspect,
        counters: Counters,
    ) -> None:
        self.state = ApplicationState()
        self.stalled = False
        self._member = member
        self._errands = errands
        self._consume_ns = consume_ns
        self._state_bytes = state_bytes
        self._inspect = inspect
        self._counters = counters
        self._free_at = 0
        self._head_waits = False

    @property
    def due(self) -> int | None:
        """When the application has something to do next; None if only others can change that."""
        times = [self._errands.next_at, self._free_at if self._head_waits else None]
        return min((time for time in times if time is not None), default=None)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to consume."""
        return not self._head_waits

    def broadcast(self, now: int) -> int:
        """Broadcast what is due and has room; return how many messages that were."""
        count, waiting = self._errands.hand_over(self._member, now)
        self._counters.broadcasts += count
        if waiting:
            self._counters.count("back-pressure")
        return count

    def consume(self, now: int) -> int:
        """Take what there is while the last message is dealt with; return how many things that were."""
        member, count = self._member, 0
        self._give_state()
        while (head := member.head(now)) is not None and now >= self._free_at and not self.stalled:
            if isinstance(head, OrderedBatch):
                self._take(head, now)
            else:
                if isinstance(head, StateRestore):
                    self.state = load(head.snapshot.data)
                member.consume_event(now)
            self._give_state()
            count += 1
        self._head_waits = head is not None and not self.stalled
        return count

    def _take(self, head: OrderedBatch, now: int) -> None:
        message, position = head.message(head.taken), head.position + head.taken
        self._inspect(message, position, self.state, now)
        self._member.consume(1, now)
        self.state.take(message, position)
        self._counters.deliveries += 1
        self._free_at = now + self._consume_ns

    def _give_state(self) -> None:
        if self._member.snapshot_wanted:
            self._member.offer_snapshot(self.state.save(self._state_bytes))
