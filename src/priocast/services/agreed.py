"""The qualities with a decision: atomic and tight, each with its own order.

sender                 TwoPhaseSender   transmit, collect the responses, decide
recipient              Acceptance       queue, answer, wait for the decision
if the sender fails    Monitor          ask the recipients, decide
both that decide       Announcements    send the decision until it is known
"""

from collections.abc import Callable, Sequence

from priocast.core.identity import ProcessId
from priocast.links.transmission import earliest
from priocast.services.accept_queues import AcceptQueue, InsertionPointQueue, NetworkOrderQueue
from priocast.services.acceptance import Acceptance
from priocast.services.announcements import Announcements
from priocast.services.monitor import Monitor
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, ServiceOutput
from priocast.services.packets import (
    Closed,
    DecisionReceived,
    Inquiry,
    MessageDecision,
    Report,
    Response,
    ServiceData,
    ServicePacket,
    StatusRequest,
    Undecided,
)
from priocast.services.present import PresentMembers
from priocast.services.two_phase_sender import TwoPhaseSender


class AgreedQuality:
    """One member's part in the messages of one of these qualities; if it `preempts`, urgent ones overtake.

    The application takes what is delivered from the `queue`.
    """

    def __init__(
        self,
        me: ProcessId,
        options: ServiceOptions,
        present: PresentMembers,
        has_room: Callable[[], bool],
        preempts: bool,
    ) -> None:
        in_network_order = options.in_network_order and not preempts
        queue: AcceptQueue = NetworkOrderQueue() if in_network_order else InsertionPointQueue(preempts)
        self.queue = queue
        self._announcements = Announcements(options)
        self._sender = TwoPhaseSender(options, present, self._announcements, in_network_order, preempts)
        self._acceptance = Acceptance(me, options, present, queue, has_room)
        self._monitor = Monitor(me, options, present, self._announcements, in_network_order)

    # Inputs

    def on_send(self, data: ServiceData, now: int) -> list[ServiceOutput]:
        """The application sends a message."""
        return self._sender.on_send(data, self.queue.clock, now)

    def receive(self, peer: ProcessId, packet: ServicePacket, now: int) -> list[ServiceOutput]:
        """A packet came from a member."""
        outputs: list[ServiceOutput] = []
        match packet:
            case ServiceData():
                outputs = self._acceptance.on_data(packet, now)
            case Response():
                outputs = self._sender.on_response(peer, packet, now)
            case MessageDecision():
                outputs = self._acceptance.on_decision(peer, packet) + self._adopt_orphans(now)
            case DecisionReceived():
                self._announcements.on_decision_received(peer, packet)
            case StatusRequest(id=message):
                outputs = [Multicast((peer,), self._sender.status_of(message))]
            case Undecided():
                self._acceptance.on_undecided(packet, now)
            case Closed():
                outputs = self._acceptance.on_closed(packet)
            case Inquiry():
                outputs = self._acceptance.on_inquiry(peer, packet)
            case Report():
                outputs = self._monitor.on_report(peer, packet, now)
        return outputs

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Do what is due."""
        outputs = self._sender.on_tick(now) + self._announcements.on_tick(now)
        outputs += self._acceptance.on_tick(now) + self._monitor.on_tick(now)
        return outputs + self._adopt_orphans(now)

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later."""
        for part in (self._sender, self._announcements, self._acceptance, self._monitor):
            part.on_inaccessible(duration_ns)

    def on_departures(self, departed: Sequence[ProcessId], now: int) -> list[ServiceOutput]:
        """The view has changed, and these processes have left it."""
        self._announcements.on_departures(departed)
        self._acceptance.on_view(now)
        outputs = self._sender.on_departures(departed, now) + self._monitor.on_departures(departed, now)
        return outputs + self._adopt_orphans(now)

    # Queries

    @property
    def in_flight(self) -> int:
        """How many messages of this member are undecided."""
        return self._sender.in_flight

    @property
    def deadline(self) -> int | None:
        """When `on_tick` has something to do next."""
        parts = (self._sender, self._announcements, self._acceptance, self._monitor)
        return earliest(part.deadline for part in parts)

    # Steps

    def _adopt_orphans(self, now: int) -> list[ServiceOutput]:
        """Decide about messages of failed senders."""
        outputs: list[ServiceOutput] = []
        for data in self._acceptance.orphans(now):
            outputs += self._monitor.on_orphan(data, self._acceptance.take_over(data.id, now), now)
        return outputs
