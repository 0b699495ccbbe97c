"""What a member asks about messages of others: those that it waits for, and those that it only heard of.

A recipient that holds a message back asks for its predecessor: the sender, or, if that has left the view,
all members. Whoever has the message sends it again. If nobody has it, it is closed: it will never be
delivered here, and is no longer waited for.

A member that knows a message only from causal histories asks whether it can leave its own: the sender, or,
if that has left the view, the recipients, all of them: one that has not received the message knows nothing.
"""

from collections.abc import Iterable

from priocast.core.identity import ProcessId
from priocast.links.transmission import Transmission, earliest
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast
from priocast.services.packets import Closed, Predecessor, StatusRequest, TransmissionId
from priocast.services.present import PresentMembers


class Gaps:
    """The messages that one member asks about."""

    def __init__(self, me: ProcessId, options: ServiceOptions, present: PresentMembers) -> None:
        self._me = me
        self._options = options
        self._present = present
        self._asked: dict[TransmissionId, Transmission[bool]] = {}
        self._recipients: dict[TransmissionId, tuple[ProcessId, ...]] = {}

    def await_message(self, message: TransmissionId, now: int) -> None:
        """A message is missing: ask for it if it does not come soon."""
        if message not in self._asked:
            self._asked[message] = self._request(message, now)

    def await_settlement(self, predecessor: Predecessor, now: int) -> None:
        """A message is in the history, and this member is neither its sender nor a recipient."""
        if predecessor.id not in self._asked:
            self._recipients[predecessor.id] = predecessor.recipients
            self._asked[predecessor.id] = self._request(predecessor.id, now)

    def on_arrived(self, message: TransmissionId) -> None:
        """A message has come."""
        self._asked.pop(message, None)

    def on_closed(self, peer: ProcessId, closed: Closed) -> None:
        """A process does not have a message, or is sure that nobody has to wait for it."""
        request = self._asked.get(closed.id)
        if request is not None:
            request.on_response(peer, request.retry, True)

    def on_tick(self, now: int) -> list[Multicast]:
        """Ask for what is still missing."""
        return [
            Multicast(tuple(request.missing), StatusRequest(message))
            for message, request in self._asked.items()
            if request.on_tick(now)
        ]

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later."""
        for request in self._asked.values():
            request.on_inaccessible(duration_ns)

    def on_departures(self, departed: Iterable[ProcessId], now: int) -> None:
        """These processes have left the view: ask others in their place."""
        for message, request in list(self._asked.items()):
            if message.sender in departed:
                self._asked[message] = self._request(message, now)
            else:
                for process in departed:
                    request.on_departure(process)

    def take_closed(self) -> list[TransmissionId]:
        """The messages that all who were asked have closed; they are no longer asked about."""
        closed = [message for message, request in self._asked.items() if request.complete]
        for message in closed:
            del self._asked[message]
            self._recipients.pop(message, None)
        return closed

    def awaits(self, message: TransmissionId) -> bool:
        """Whether others are held back until this message comes."""
        return message in self._asked

    @property
    def deadline(self) -> int | None:
        """When `on_tick` has something to do next."""
        if not self._asked:
            return None
        return earliest(request.waits_until for request in self._asked.values())

    def _request(self, message: TransmissionId, now: int) -> Transmission[bool]:
        who: tuple[ProcessId, ...] = (message.sender,)
        if message.sender not in self._present:
            candidates = self._recipients.get(message, self._present.all)
            who = tuple(each for each in self._present.among(candidates) if each != self._me)
        timeout_ns = self._options.response_ns
        request: Transmission[bool] = Transmission(
            who, timeout_ns=timeout_ns, retries_max=None, send_first=False
        )
        request.start(now)
        return request
