"""The queues of messages that wait for a decision, or for those before them (xAMp, section 5.5).

A recipient queues a message before it is decided, and delivers it when it is accepted and no message
before it is undecided. There are two ways to agree on the order:

- `NetworkOrderQueue`, on a network that has network order: messages are queued as they arrive. A
  retransmission moves a message to the end, and the sender accepts only if all recipients have received
  the same transmission.
- `InsertionPointQueue`, on any network: recipients propose insertion points, and the accepted point is after
  all of them. Without priorities a message is queued after all others. With priorities (*tight*) it is
  queued after those that are at least as urgent, and overtakes the others. Until it is decided, nothing
  that it may overtake is delivered: an undecided message locks the queue from its earliest point on, and
  several may do so.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque

import msgspec

from priocast.core.events import ServiceDelivery
from priocast.services.insertion import BEGINNING, Point, point_of_unit
from priocast.services.packets import ServiceData, TransmissionId
from priocast.services.units import deliveries_of


class InsertionProposal(msgspec.Struct, frozen=True):
    """Where a recipient can insert a message: after `lowest`, and preferably before `before`.

    Both are empty where the network decides about the order; `before` is empty if no message follows.
    """

    lowest: Point = ()
    before: Point = ()


class AcceptQueue(ABC):
    """What one member has received of one quality and not delivered."""

    @abstractmethod
    def insert(self, data: ServiceData) -> InsertionProposal:
        """Queue a message, or its retransmission."""

    @abstractmethod
    def proposal(self, message: TransmissionId) -> InsertionProposal:
        """What a monitor is told about a queued message, after its sender has failed."""

    @abstractmethod
    def accept(self, message: TransmissionId, point: Point) -> None:
        """A queued message is accepted at this point."""

    @abstractmethod
    def reject(self, message: TransmissionId) -> None:
        """A queued message is not delivered."""

    @abstractmethod
    def head(self) -> ServiceDelivery | None:
        """The unit that can be delivered next."""

    @abstractmethod
    def take(self) -> None:
        """The head was delivered."""

    @property
    @abstractmethod
    def held(self) -> int:
        """How much is queued."""

    @property
    @abstractmethod
    def clock(self) -> Point:
        """The point of what was delivered last here; the next message that is sent must follow it."""


class _Arrival(msgspec.Struct):
    """A message that was received; its units can be taken once it is accepted."""

    data: ServiceData
    units: deque[ServiceDelivery] | None = None


class NetworkOrderQueue(AcceptQueue):
    """Messages in the order in which the network delivered their last transmissions."""

    def __init__(self) -> None:
        self._arrivals: dict[TransmissionId, _Arrival] = {}

    def insert(self, data: ServiceData) -> InsertionProposal:
        """Move it to the end: the sender counts only the responses to one transmission."""
        self._arrivals.pop(data.id, None)
        self._arrivals[data.id] = _Arrival(data)
        return InsertionProposal()

    def proposal(self, message: TransmissionId) -> InsertionProposal:
        """The transmission that was queued says where."""
        return InsertionProposal()

    def accept(self, message: TransmissionId, point: Point) -> None:
        """It keeps the position in which it was received."""
        arrival = self._arrivals[message]
        arrival.units = deque(deliveries_of(arrival.data))

    def reject(self, message: TransmissionId) -> None:
        """Remove it."""
        del self._arrivals[message]

    def head(self) -> ServiceDelivery | None:
        """The next unit of the first message, if that is accepted."""
        first = next(iter(self._arrivals.values()), None)
        return first.units[0] if first is not None and first.units else None

    def take(self) -> None:
        """Its message leaves the queue with the last unit."""
        first = next(iter(self._arrivals.values()))
        assert first.units
        first.units.popleft()
        if not first.units:
            del self._arrivals[first.data.id]

    @property
    def held(self) -> int:
        """How many messages are queued."""
        return len(self._arrivals)

    @property
    def clock(self) -> Point:
        """The network orders; no clock is needed."""
        return ()


class _Undecided(msgspec.Struct):
    """An undecided message and where it can be inserted."""

    data: ServiceData
    lowest: Point
    before: Point


class InsertionPointQueue(AcceptQueue):
    """Messages by their insertion points. `preempts`: urgent messages overtake others."""

    def __init__(self, preempts: bool) -> None:
        self._preempts = preempts
        self._undecided: dict[TransmissionId, _Undecided] = {}
        self._accepted: list[tuple[Point, TransmissionId, ServiceDelivery]] = []
        self._locked_from: Point | None = None  # the lowest point of an undecided message
        self._delivered: Point = BEGINNING
        self._highest: Point = BEGINNING

    def insert(self, data: ServiceData) -> InsertionProposal:
        """Propose a point; a retransmission gets the same answer."""
        if data.id not in self._undecided:
            lowest = max(self._earliest(data.priority), data.clock or BEGINNING)
            before = self._following(lowest) if self._preempts else ()
            self._undecided[data.id] = _Undecided(data, lowest, before)
            self._highest = max(self._highest, (lowest[0] + 1,))
            self._lock()
        waiting = self._undecided[data.id]
        return InsertionProposal(waiting.lowest, waiting.before)

    def proposal(self, message: TransmissionId) -> InsertionProposal:
        """As before, but between the accepted messages that its sender sent before and after it.

        The sender would have accepted it there. A monitor that knows fewer proposals might otherwise choose a
        point outside.
        """
        waiting = self._undecided[message]
        related = [(point, each) for point, each, unit in self._accepted if self._in_turn(unit, waiting.data)]
        lowest = max((waiting.lowest, *(point for point, each in related if each < message)))
        later = (waiting.before, *(point for point, each in related if each > message))
        return InsertionProposal(lowest, min((point for point in later if point > lowest), default=()))

    def accept(self, message: TransmissionId, point: Point) -> None:
        """Its units are queued one by one, so that another message can be inserted between them."""
        data = self._undecided.pop(message).data
        accepted, count = self._accepted, len(data.units)
        is_last = not accepted or accepted[-1][0] < point
        accepted += [
            (point_of_unit(point, index, count), message, unit)
            for index, unit in enumerate(deliveries_of(data))
        ]
        if not is_last:
            accepted.sort(key=lambda each: each[:2])
        self._highest = max(self._highest, point_of_unit(point, count - 1, count))
        self._lock()

    def reject(self, message: TransmissionId) -> None:
        """Remove it; what waited for the decision can be delivered."""
        del self._undecided[message]
        self._lock()

    def head(self) -> ServiceDelivery | None:
        """The first unit, unless an undecided message may be inserted before it."""
        if not self._accepted:
            return None
        point, _, unit = self._accepted[0]
        return unit if self._locked_from is None or point <= self._locked_from else None

    def take(self) -> None:
        """Later messages are inserted after it."""
        self._delivered = self._accepted.pop(0)[0]

    @property
    def held(self) -> int:
        """How many undecided messages and accepted units are queued."""
        return len(self._undecided) + len(self._accepted)

    @property
    def clock(self) -> Point:
        """What this member sends next follows everything that it has delivered."""
        return self._delivered

    def _earliest(self, priority: int) -> Point:
        """The earliest point for a message of this priority."""
        if not self._preempts:
            return self._highest
        as_urgent = (point for point, _, unit in reversed(self._accepted) if unit.priority >= priority)
        return max(self._delivered, next(as_urgent, self._delivered))

    def _following(self, lowest: Point) -> Point:
        """The first point after this one that is taken; empty if none is."""
        index = bisect_right(self._accepted, lowest, key=lambda each: each[0])
        return self._accepted[index][0] if index < len(self._accepted) else ()

    def _lock(self) -> None:
        """The undecided messages have changed."""
        self._locked_from = min((waiting.lowest for waiting in self._undecided.values()), default=None)

    def _in_turn(self, unit: ServiceDelivery, other: ServiceData) -> bool:
        """Whether these are of messages of one sender that it sent one after the other."""
        same_lane = unit.priority == other.priority or not self._preempts
        return same_lane and unit.sender == other.id.sender
