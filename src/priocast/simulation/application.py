"""The application of one member: it broadcasts what is planned and consumes one message at a time.

Under back-pressure it waits: a broadcast for which there is no room waits in a queue of its priority class.
Nothing is lost, and an urgent broadcast does not wait behind a routine one.

What it consumes becomes its state: which planned broadcasts it has applied, and a hash over all messages for
all members, in their order. Members with equal states have consumed the same messages in the same order.
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from priocast.core.events import ServiceDelivery
from priocast.core.message import Message, OrderedBatch
from priocast.core.priority import CLASS_COUNT, class_of
from priocast.member import Member
from priocast.membership.stream_items import Head, StateRestore
from priocast.simulation.counters import Counters
from priocast.simulation.service_workload import ServicePlan
from priocast.simulation.workload import PlannedBroadcast, name_in

Inspect = Callable[[Message, int, "ApplicationState", int], None]


class ApplicationState(msgspec.Struct):
    """What an application knows; a new member takes it over. `applied` names planned broadcasts."""

    digest: bytes = b""
    applied: set[str] = set()

    def apply(self, message: Message, position: int) -> None:
        """A message was consumed. Messages that are not for all members do not change the state."""
        if not message.scope.to:
            text = f"{position} {message.id}".encode()
            self.digest = blake2b(self.digest + text, digest_size=16).digest()
            self.applied.add(name_in(message.payload))

    def save(self, padding: int) -> bytes:
        """The state as bytes, with this many bytes of padding."""
        return msgspec.msgpack.encode((self.digest, sorted(self.applied), bytes(padding)))


def load(data: bytes) -> ApplicationState:
    """The state that was saved."""
    digest, applied, _ = msgspec.msgpack.decode(data, type=tuple[bytes, list[str], bytes])
    return ApplicationState(digest, set(applied))


class BroadcastPlan:
    """What the application of one process still has to broadcast.

    It outlives an incarnation. `submitted` are the broadcasts that were handed to a member and that no crash
    or leave has discarded since.
    """

    def __init__(self, planned: list[PlannedBroadcast]) -> None:
        self._future = deque(planned)
        self._due: list[deque[PlannedBroadcast]] = [deque() for _ in range(CLASS_COUNT)]
        self.submitted: list[PlannedBroadcast] = []

    @property
    def next_at(self) -> int | None:
        """When the next broadcast becomes due."""
        return self._future[0].time if self._future else None

    @property
    def done(self) -> bool:
        """Whether everything was broadcast."""
        return not self._future and not any(self._due)

    def add(self, planned: PlannedBroadcast) -> None:
        """Broadcast something that was not planned, as soon as there is room."""
        self._due[class_of(planned.priority)].append(planned)

    def submit(self, member: Member, now: int) -> tuple[int, bool]:
        """Broadcast what is due and has room; return the number of messages and whether any has to wait."""
        while self._future and self._future[0].time <= now:
            planned = self._future.popleft()
            self._due[class_of(planned.priority)].append(planned)
        count, waiting = 0, False
        for queue in reversed(self._due):
            while queue and member.room(queue[0].priority) > 0:
                planned = queue.popleft()
                member.broadcast_many([planned.payload], planned.priority, planned.scope)
                self.submitted.append(planned)
                count += 1
            waiting |= bool(queue)
        return count, waiting


class SimulatedApplication:
    """Broadcasts what is planned and consumes; `inspect` sees every message before it is consumed."""

    def __init__(
        self,
        member: Member,
        plan: BroadcastPlan,
        consume_ns: int,
        state_bytes: int,
        inspect: Inspect,
        counters: Counters,
        service_plan: ServicePlan,
    ) -> None:
        self.state = ApplicationState()
        self.stalled = False
        self._member = member
        self._plan = plan
        self._service_plan = service_plan
        self._consume_ns = consume_ns
        self._state_bytes = state_bytes
        self._inspect = inspect
        self._counters = counters
        self._free_at = 0
        self._head_waits = False

    @property
    def due(self) -> int | None:
        """When the application acts next by itself; None if it waits for something to arrive."""
        consumes_at = self._free_at if self._head_waits else None
        times = [self._plan.next_at, self._service_plan.next_at, consumes_at]
        return min((time for time in times if time is not None), default=None)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to consume."""
        return not self._head_waits

    def broadcast(self, now: int) -> int:
        """Broadcast what is due and has room; return the number of messages."""
        count, waiting = self._plan.submit(self._member, now)
        self._counters.broadcasts += count
        if waiting:
            self._counters.count("back-pressure")
        return count if self._service_plan.done else count + self._service_plan.submit(self._member, now)

    def consume(self, now: int) -> int:
        """Consume while the application is free; return the number of messages and events."""
        member, count = self._member, 0
        self._offer_snapshot()
        while (head := self._next(now)) is not None and now >= self._free_at and not self.stalled:
            if isinstance(head, ServiceDelivery):
                self._take_service(now)
            elif isinstance(head, OrderedBatch):
                self._consume_message(head, now)
            else:
                if isinstance(head, StateRestore):
                    self.state = load(head.snapshot.data)
                member.consume_event(now)
            self._offer_snapshot()
            count += 1
        self._head_waits = head is not None and not self.stalled
        return count

    def _next(self, now: int) -> Head | ServiceDelivery | None:
        """What the application consumes next."""
        head = self._member.head(now)
        return self._member.service_head(head) or head

    def _take_service(self, now: int) -> None:
        self._service_plan.on_taken(self._member.me, self._member.take_service(now), now)
        self._counters.deliveries += 1
        self._free_at = now + self._consume_ns

    def _consume_message(self, head: OrderedBatch, now: int) -> None:
        message, position = head.message(head.taken), head.position + head.taken
        self._inspect(message, position, self.state, now)
        self._member.consume(1, now)
        self.state.apply(message, position)
        self._counters.deliveries += 1
        self._free_at = now + self._consume_ns

    def _offer_snapshot(self) -> None:
        if self._member.snapshot_wanted:
            self._member.offer_snapshot(self.state.save(self._state_bytes))
