"""The sender's side of numbering: numbers that it has requested, and numbers that it was granted."""

from collections import deque

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.priority import class_of, limits_by_class
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.frames import fill_frame
from priocast.protocols.numbering.packets import NumberGrant, NumberRange, NumberRequest
from priocast.protocols.numbering.requests import UnusedNumbers


class GrantedNumbers(UnusedNumbers):
    """Numbers that this member was granted and has not used yet, by whom, and the bottleneck named there."""

    __slots__ = ("bottleneck", "giver")

    def __init__(self, giver: ProcessId, numbers: NumberRange, bottleneck: str) -> None:
        super().__init__(numbers.position, numbers.count)
        self.giver = giver
        self.bottleneck = bottleneck


class NumberRequester:
    """Requests numbers for new messages within the sender's credit, and binds granted numbers late.

    A number is used for the most urgent message that waits when it is used, not for the one that it was
    requested for. Numbers are used in their order.
    """

    def __init__(self, options: OrderingOptions, position: int) -> None:
        self._prioritised = options.prioritised
        self._limits = limits_by_class(options.submit_max, options.prioritised)
        self._unrequested: dict[int, tuple[int, int]] = {}
        self._requested = 0
        self._granted: deque[GrantedNumbers] = deque()
        self._granted_end = position

    def __bool__(self) -> bool:
        """Whether there are numbers to use."""
        return bool(self._granted)

    def add(self, batch: Batch) -> None:
        """New messages need numbers."""
        level = batch.urgency if self._prioritised else batch.level
        count, size = self._unrequested.get(level, (0, 0))
        self._unrequested[level] = count + batch.count, size + len(batch.block)

    def take_requests(self) -> tuple[NumberRequest, ...]:
        """What to request now: numbers for what is new, the most urgent first, within the credit."""
        requests = []
        for level in sorted(self._unrequested, reverse=True):
            count, size = self._unrequested[level]
            requested = min(count, self._limits[class_of(level)] - self._requested)
            if requested <= 0:
                continue
            request = NumberRequest(level, requested, size * requested // count)
            self._unrequested[level] = count - requested, size - request.size
            if requested == count:
                del self._unrequested[level]
            self._requested += requested
            requests.append(request)
        return tuple(requests)

    def granted(self, giver: ProcessId, grant: NumberGrant) -> None:
        """Numbers were granted; raises PeerFault, and has taken none, if these cannot be."""
        left, end = self._requested, self._granted_end
        for each in grant.ranges:
            if each.position < end or each.count > left:
                raise PeerFault(
                    f"{giver} grants {each.count} numbers from {each.position} on; {left} were requested, "
                    f"not before {end}"
                )
            left -= each.count
            end = each.position + each.count
        self._requested = left
        self._granted_end = end
        self._granted += [GrantedNumbers(giver, each, grant.bottleneck) for each in grant.ranges]

    def bind_frame(
        self, outgoing: PriorityQueue, in_flight: InFlight
    ) -> tuple[int, tuple[Batch, ...], GrantedNumbers]:
        """Bind the next numbers to the most urgent messages, up to one frame.

        Return the position of the first message, the messages, and the numbers that were used.
        """
        numbers = self._granted[0]
        position = numbers.position

        def bind(batch: Batch) -> None:
            numbers.use(batch.count)
            in_flight.sent(batch)

        batches = fill_frame(outgoing, lambda _: numbers.count, bind)
        if not numbers.count:
            self._granted.popleft()
        return position, batches, numbers
