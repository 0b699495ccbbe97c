"""The giver's side of numbering: requests wait in a queue, and are granted by priority, within the window."""

from collections import deque
from collections.abc import Container

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BLOCK_BYTES_MAX
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.protocols.numbering.packets import RANGES_MAX, Numbered, NumberGrant, NumberRange, NumberRequest
from priocast.protocols.numbering.requests import NumberRequestQueue, NumberReservations, UnusedNumbers


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
        self._unused: dict[ProcessId, deque[UnusedNumbers]] = {member: deque() for member in view.members}

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
        """Grant numbers from this one on, one turn's worth, in the order of the queue.

        All that one member is granted in a turn goes into one packet: with eight levels in use, a member gets
        its numbers in eight pieces, between those of the others.
        """
        if number != self.position_end:
            self._position_first = number
        granted = self._take_granted(number, blocked)
        bottleneck = self.bottleneck()
        name = bottleneck.name if bottleneck else ""
        grants: list[tuple[ProcessId, NumberGrant]] = []
        for sender, pieces in granted.items():
            self._unused[sender] += pieces
            ranges = tuple([NumberRange(each.position, each.count) for each in pieces])
            grants.append((sender, NumberGrant(ranges, name)))
        return grants

    def _take_granted(
        self, number: int, blocked: Container[ProcessId]
    ) -> dict[ProcessId, list[UnusedNumbers]]:
        """Serve the requests, as far as there is room; consecutive numbers of one member are one piece."""
        granted: dict[ProcessId, list[UnusedNumbers]] = {}
        served: ProcessId | None = None
        self.cut_short = False
        while self.requests:
            sender, level = self.requests.head()
            room = self.reservations.room(level)
            if room <= 0 or sender in blocked:
                break
            pieces = granted.setdefault(sender, [])
            if sender != served:
                if len(pieces) == RANGES_MAX:
                    self.cut_short = True
                    break
                pieces.append(UnusedNumbers(number, 0))
                served = sender
            count, size = self.requests.take(room, self.reservations.bytes_left)
            self.requested_by[sender] -= count
            self.reservations.reserve(count, size)
            pieces[-1].count += count
            number += count
        self.position_end = number
        return granted

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
