"""The giver's side of numbering: requests wait in a queue, and are granted by priority, within the window."""

from collections import deque
from collections.abc import Container

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BLOCK_BYTES_MAX
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.numbering.packets import Numbered, NumberGrant, NumberRequest
from priocast.protocols.numbering.requests import NumberRange, NumberRequestQueue, NumberReservations


class NumberGiver:
    """Grants numbers, and checks that they are used by the members that they were granted to, in their order.

    `position_end` is the position after the last number that this member granted. `cut_short` says that more
    could be granted than fits into one turn.
    """

    def __init__(
        self, view: View, options: OrderingOptions, position: int, reservations: NumberReservations
    ) -> None:
        self.requests = NumberRequestQueue(options.policy)
        self.requested_by = dict.fromkeys(view.members, 0)
        self.reservations = reservations
        self.position_end = position
        self.cut_short = False
        self._request_max = options.submit_max
        self._position_first = position
        self._unused: dict[ProcessId, deque[NumberRange]] = {member: deque() for member in view.members}

    def request(self, sender: ProcessId, request: NumberRequest, since: int) -> None:
        """A member requests numbers; the request has waited since then."""
        self.requested_by[sender] += request.count
        if self.requested_by[sender] > self._request_max:
            raise PeerFault(f"{sender} requests more than its credit of {self._request_max} numbers")
        if request.size > request.count * BLOCK_BYTES_MAX:
            raise PeerFault(f"{sender} requests {request}, which is more than messages can have")
        self.requests.put(sender, request, since)

    def take_request(self) -> tuple[ProcessId, NumberRequest, int]:
        """Remove the next request: the member, what it requests, and since when it has waited."""
        sender, request, since = self.requests.take_whole()
        self.requested_by[sender] -= request.count
        return sender, request, since

    def grant(self, number: int, blocked: Container[ProcessId]) -> list[tuple[ProcessId, NumberGrant]]:
        """Grant numbers from this one on, one turn's worth, in the order of the queue."""
        if number != self.position_end:
            self._position_first = number
        self.cut_short = False
        granted: list[tuple[ProcessId, NumberRange]] = []
        while self.requests:
            sender, level = self.requests.head()
            room = self.reservations.room(level)
            if room <= 0 or sender in blocked:
                break
            if not granted or granted[-1][0] != sender:
                if len(granted) == FRAMES_PER_TURN:
                    self.cut_short = True
                    break
                granted.append((sender, NumberRange(number, 0)))
            count, size = self.requests.take(room, self.reservations.bytes_left)
            self.requested_by[sender] -= count
            self.reservations.reserve(count, size)
            granted[-1][1].count += count
            number += count
        self.position_end = number
        bottleneck = self.bottleneck()
        name = bottleneck.name if bottleneck else ""
        for sender, numbers in granted:
            self._unused[sender].append(numbers)
        return [(sender, NumberGrant(each.position, each.count, name)) for sender, each in granted]

    def bottleneck(self) -> ProcessId | None:
        """The member whose grant the next request waits for, if it has to wait."""
        return self.reservations.bottleneck(self.requests.head()[1]) if self.requests else None

    def check_used(self, sender: ProcessId, numbered: Numbered) -> None:
        """Raise if numbers that this member granted are used by another member, or in another order."""
        if not self._position_first <= numbered.position < self.position_end:
            return
        unused = self._unused[sender]
        count = numbered.count
        if not unused or numbered.position != unused[0].position or count > unused[0].count:
            raise PeerFault(f"{sender} uses numbers from {numbered.position} on, which it was not granted")
        unused[0].use(count)
        if not unused[0].count:
            unused.popleft()
