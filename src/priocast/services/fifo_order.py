"""FIFO order: a recipient delivers the messages of one sender in the order in which they were sent.

Every message names the sender's previous message to the same recipient. A recipient holds a message back
until that one is delivered or given up. A message that is sent without acknowledgement is named by no
other; it is dropped if a later one was delivered before it arrived.
"""

from priocast.core.identity import ProcessId
from priocast.services.packets import ServiceData, TransmissionId
from priocast.services.present import PresentMembers
from priocast.services.received import ReceivedMessages


class FifoOrder:
    """What one member has delivered of each sender, and what it holds back."""

    def __init__(self, me: ProcessId, received: ReceivedMessages) -> None:
        self._me = me
        self._received = received
        self._last: dict[ProcessId, int] = {}
        self._held: dict[TransmissionId, ServiceData] = {}

    @property
    def held(self) -> int:
        """How many messages are held back."""
        return len(self._held)

    def on_arrived(self, data: ServiceData) -> list[ServiceData]:
        """A message was received for the first time; returns what can be delivered now."""
        if not self._held and self._awaited(data) is None:
            return [data] if self._is_later(data) else []
        self._held[data.id] = data
        return self.release()

    def on_view(self, present: PresentMembers) -> None:
        """The members have changed: forget the departed senders of whom nothing is held."""
        senders = {message.sender for message in self._held}
        self._last = {
            sender: number for sender, number in self._last.items() if sender in present or sender in senders
        }

    def release(self) -> list[ServiceData]:
        """What can be delivered now, after a message has come or was given up."""
        released = []
        while ready := [data for data in self._held.values() if self._awaited(data) is None]:
            for data in sorted(ready, key=lambda each: each.id):
                del self._held[data.id]
                if self._is_later(data):
                    released.append(data)
        return released

    def awaited(self) -> list[TransmissionId]:
        """The messages that are waited for and were not received."""
        found = (self._awaited(data) for data in self._held.values())
        return [each for each in dict.fromkeys(found) if each is not None and each not in self._held]

    def _is_later(self, data: ServiceData) -> bool:
        """Whether no later message of its sender was delivered; this one is delivered then."""
        is_later = data.id.number > self._last.get(data.id.sender, 0)
        if is_later:
            self._last[data.id.sender] = data.id.number
        return is_later

    def _awaited(self, data: ServiceData) -> TransmissionId | None:
        """The message that must be delivered before this one, if it is not yet."""
        number = data.previous[data.recipients.index(self._me)] if data.previous else 0
        if number == 0:
            return None
        previous = TransmissionId(data.id.sender, data.id.stream, number)
        is_over = self._received.has(previous) and previous not in self._held
        return None if is_over else previous
