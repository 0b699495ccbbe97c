"""FIFO order: a recipient delivers the messages of one sender in the order in which they were sent.

Every message names the sender's previous message to the same recipient. A recipient holds a message back
until that one is delivered or given up. A message that was given up can no longer say which one is before it:
then everything that its sender still transmits is waited for. A message that is sent without acknowledgement
is named by no other; it is dropped if a later one was delivered before it arrived.
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
        self._given_up: dict[ProcessId, set[int]] = {}

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

    def on_given_up(self, message: TransmissionId, open_from: int = 0) -> None:
        """A message will not come any more; its sender no longer transmits those before `open_from`."""
        given_up = self._given_up.get(message.sender, set())
        self._given_up[message.sender] = {each for each in given_up if each >= open_from} | {message.number}

    def is_overtaken(self, data: ServiceData) -> bool:
        """Whether a later message of its sender was delivered, so that this one cannot be."""
        return data.id.number <= self._last.get(data.id.sender, 0)

    def on_view(self, present: PresentMembers) -> None:
        """The members have changed: forget the departed senders of whom nothing is held."""
        senders = {message.sender for message in self._held}
        self._last = {
            sender: number for sender, number in self._last.items() if sender in present or sender in senders
        }
        self._given_up = {sender: self._given_up[sender] for sender in self._last if sender in self._given_up}

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
        if self.is_overtaken(data):
            return False
        sender, number = data.id.sender, data.id.number
        self._last[sender] = number
        if sender in self._given_up:
            self._given_up[sender] = {each for each in self._given_up[sender] if each > number}
        return True

    def _awaited(self, data: ServiceData) -> TransmissionId | None:
        """The message that must be delivered before this one, if it is not yet."""
        number = data.previous[data.recipients.index(self._me)] if data.previous else 0
        if number == 0:
            return None
        previous = TransmissionId(data.id.sender, data.id.stream, number)
        if not self._is_over(previous):
            return previous
        given_up = self._given_up.get(previous.sender)
        if given_up and number in given_up:
            for earlier in range(number - 1, max(data.open_from, 1) - 1, -1):
                message = TransmissionId(data.id.sender, data.id.stream, earlier)
                if not self._is_over(message):
                    return message
        return None

    def _is_over(self, message: TransmissionId) -> bool:
        return self._received.has(message) and message not in self._held
