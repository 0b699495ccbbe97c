"""Announcements: how the decision about an atomic or tight message reaches the recipients.

The sender announces what it decided, and so does a monitor that decides in its place. An acknowledged
announcement is transmitted until every recipient that is present has answered. Otherwise the decision is
sent once, and recipients that miss it ask for it (the paper's negatively acknowledged accept).
"""

from collections.abc import Iterable

from priocast.core.identity import ProcessId
from priocast.links.transmission import Transmission, earliest
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, ServiceOutput, Suspected
from priocast.services.packets import DecisionReceived, MessageDecision, TransmissionId


class Announcements:
    """The decisions that one member announces until all recipients have acknowledged them."""

    def __init__(self, options: ServiceOptions) -> None:
        self._options = options
        self._running: dict[TransmissionId, tuple[MessageDecision, Transmission[bool]]] = {}

    def announce(
        self, decision: MessageDecision, recipients: Iterable[ProcessId], now: int, *, acknowledged: bool
    ) -> list[ServiceOutput]:
        """Send a decision, until it is acknowledged if that is asked for."""
        to = tuple(recipients)
        if acknowledged:
            transmission: Transmission[bool] = Transmission(
                to, timeout_ns=self._options.response_ns, retries_max=self._options.transmissions_max
            )
            transmission.start(now)
            self._running[decision.id] = decision, transmission
        return [Multicast(to, decision)] if to else []

    def on_decision_received(self, peer: ProcessId, received: DecisionReceived) -> None:
        """A recipient knows the decision."""
        if received.id in self._running:
            decision, transmission = self._running[received.id]
            if received.epoch == decision.epoch:
                transmission.on_response(peer, transmission.retry, True)
                self._end_if_complete(decision.id)

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Send again what was not acknowledged in time."""
        outputs: list[ServiceOutput] = []
        for decision, transmission in list(self._running.values()):
            if transmission.on_tick(now):
                outputs.append(Multicast(tuple(transmission.missing), decision))
            if transmission.exhausted:
                outputs += [Suspected(process) for process in transmission.silent]
                del self._running[decision.id]
        return outputs

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later."""
        for _, transmission in self._running.values():
            transmission.on_inaccessible(duration_ns)

    def on_departures(self, departed: Iterable[ProcessId]) -> None:
        """These processes have left the view: their acknowledgements are no longer awaited."""
        for message, (_, transmission) in list(self._running.items()):
            for process in departed:
                transmission.on_departure(process)
            self._end_if_complete(message)

    def has(self, message: TransmissionId) -> bool:
        """Whether the decision about this message is being announced."""
        return message in self._running

    @property
    def deadline(self) -> int | None:
        """When `on_tick` has something to do next."""
        if not self._running:
            return None
        return earliest(transmission.waits_until for _, transmission in self._running.values())

    def _end_if_complete(self, message: TransmissionId) -> None:
        if self._running[message][1].complete:
            del self._running[message]
