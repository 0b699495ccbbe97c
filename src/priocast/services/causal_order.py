"""Causal order: a message is delivered after all messages that may have caused it (xAMp, Figure 4).

Every message carries the causal history of its sender: the messages that the sender has sent or delivered
before, each with its recipients. A recipient holds it back until it has delivered those of them that were
addressed to it. Recipients differ from message to message, which is why the history has messages and not
a vector of counters.

A message leaves the histories when every recipient can deliver it: all of them have received it, and
everything in its own history has left already. Nobody ever has to wait for it again. Its sender and its
recipients see when that is the case. A member that knows of a message from a history alone has to ask.
"""

from priocast.core.identity import ProcessId
from priocast.services.packets import Predecessor, ServiceData, TransmissionId
from priocast.services.received import ReceivedMessages


class CausalOrder:
    """The causal history of one member, and the messages that it holds back.

    `history` has every message that may have caused the next one, and may not be delivered everywhere yet.
    """

    def __init__(self, me: ProcessId, received: ReceivedMessages) -> None:
        self._me = me
        self._received = received
        self.history: dict[TransmissionId, Predecessor] = {}
        self._causes: dict[TransmissionId, tuple[TransmissionId, ...]] = {}
        self._settled: set[TransmissionId] = set()
        self._held: dict[TransmissionId, ServiceData] = {}
        self._heard_of: list[Predecessor] = []

    @property
    def held(self) -> int:
        """How many messages are held back."""
        return len(self._held)

    def find(self, message: TransmissionId) -> ServiceData | None:
        """The message, while it is held back."""
        return self._held.get(message)

    def take_heard_of(self) -> list[Predecessor]:
        """The messages that came into the history from those of others alone, since the last call."""
        heard_of, self._heard_of = self._heard_of, []
        return heard_of

    def on_send(self, data: ServiceData) -> None:
        """This member sends a message that carries its history."""
        self._remember(data)

    def on_arrived(self, data: ServiceData) -> list[ServiceData]:
        """A message was received for the first time; returns what can be delivered now."""
        self._held[data.id] = data
        return self.release()

    def on_settled(self, message: TransmissionId) -> None:
        """Every recipient that is present has received a message: trim the history."""
        if message in self.history or message in self._held:
            self._settled.add(message)
            self._trim()

    def on_left(self, message: TransmissionId) -> None:
        """A message has left the histories of those that know it."""
        self.history.pop(message, None)
        self._trim()

    def release(self) -> list[ServiceData]:
        """What can be delivered now, after a message has come or was given up."""
        released = []
        while ready := next((each for each in self._held.values() if not self._missing(each)), None):
            del self._held[ready.id]
            self._remember(ready)
            for predecessor in ready.history:
                if not self._is_witness(predecessor) and predecessor.id not in self.history:
                    self.history[predecessor.id] = predecessor
                    self._heard_of.append(predecessor)
            released.append(ready)
        if released:
            self._trim()
        return released

    def awaited(self) -> list[TransmissionId]:
        """The messages that are waited for and were not received."""
        found = dict.fromkeys(each for data in self._held.values() for each in self._missing(data))
        return [each for each in found if each not in self._held]

    def _missing(self, data: ServiceData) -> list[TransmissionId]:
        return [
            each.id
            for each in data.history
            if self._me in each.recipients and (each.id in self._held or not self._received.has(each.id))
        ]

    def _is_witness(self, predecessor: Predecessor) -> bool:
        """Whether this member saw the message itself: if it is not in the history, it has left."""
        return self._me in predecessor.recipients or predecessor.id.sender == self._me

    def _remember(self, data: ServiceData) -> None:
        self.history[data.id] = Predecessor(data.id, data.recipients)
        self._causes[data.id] = tuple(each.id for each in data.history)

    def _trim(self) -> None:
        while gone := [each for each in sorted(self._settled) if self._can_leave(each)]:
            for each in gone:
                self._settled.discard(each)
                self.history.pop(each, None)
                self._causes.pop(each, None)

    def _can_leave(self, message: TransmissionId) -> bool:
        return message not in self._held and not any(
            cause in self.history for cause in self._causes.get(message, ())
        )
