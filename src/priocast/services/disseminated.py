"""The qualities without a decision: best effort, at least, reliable, causal and delta.

All of them disseminate a message in the same way, and differ in when a recipient delivers it.
"""

from collections.abc import Callable, Iterable, Sequence

from priocast.core.identity import ProcessId
from priocast.core.quality import QualityKind
from priocast.core.service_promises import FIFO_KINDS
from priocast.links.transmission import earliest
from priocast.services.causal_order import CausalOrder
from priocast.services.clock import VirtualClock
from priocast.services.delta_order import DeltaOrder
from priocast.services.dissemination import Dissemination
from priocast.services.fifo_order import FifoOrder
from priocast.services.gaps import Gaps
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Arrived, Deliver, GivenUp, Multicast, ServiceOutput, Settled
from priocast.services.packets import (
    HISTORY_MAX,
    HISTORY_RECIPIENTS_MAX,
    Closed,
    Predecessor,
    Response,
    ServiceData,
    ServicePacket,
    StatusRequest,
    TransmissionId,
)
from priocast.services.present import PresentMembers
from priocast.services.received import ReceivedMessages

OVERTAKEN = "a later message was delivered"


class DisseminatedQualities:
    """One member's part in the messages of these qualities."""

    def __init__(
        self,
        me: ProcessId,
        options: ServiceOptions,
        present: PresentMembers,
        clock: VirtualClock,
        has_room: Callable[[], bool],
    ) -> None:
        self._me = me
        self._present = present
        self._clock = clock
        self._has_room = has_room
        self._received = ReceivedMessages()
        self._dissemination = Dissemination(me, options, present, self._received, self._rejection)
        self._fifo = FifoOrder(me, self._received)
        self._causal = CausalOrder(me, self._received)
        self._delta = DeltaOrder(options.precision_ns)
        self._gaps = Gaps(me, options, present)
        self._last_to: dict[ProcessId, int] = {}

    # Inputs

    def on_send(self, data: ServiceData, now: int) -> list[ServiceOutput]:
        """The application sends a message."""
        if data.quality.kind is QualityKind.CAUSAL:
            self._causal.on_send(data)
        return self._ordered(self._dissemination.on_send(data, now), now)

    def receive(self, peer: ProcessId, packet: ServicePacket, now: int) -> list[ServiceOutput]:
        """A packet came from a member."""
        match packet:
            case ServiceData():
                return self._ordered(self._dissemination.on_data(peer, packet, now), now)
            case Response():
                return self._ordered(self._dissemination.on_response(peer, packet), now)
            case StatusRequest(id=message):
                return self._status_of(peer, message)
            case Closed():
                self._gaps.on_closed(peer, packet)
                return self._give_up(now)
        return []

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Do what is due: retransmissions, requests for what is missing, messages whose time has come."""
        outputs = self._ordered(self._dissemination.on_tick(now), now)
        outputs += self._gaps.on_tick(now)
        return outputs + self.on_time(now)

    def on_time(self, now: int) -> list[ServiceOutput]:
        """Release the messages whose time has come."""
        return [Deliver(data) for data in self._delta.release(self._clock.time(now))]

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later; the clock that releases messages does not stop."""
        self._dissemination.on_inaccessible(duration_ns)
        self._gaps.on_inaccessible(duration_ns)

    def on_departures(self, departed: Sequence[ProcessId], now: int) -> list[ServiceOutput]:
        """The view has changed, and these processes have left it."""
        outputs = self._ordered(self._dissemination.on_departures(departed), now)
        self._last_to = {each: self._last_to[each] for each in self._present.all if each in self._last_to}
        self._fifo.on_view(self._present)
        self._gaps.on_departures(departed, now)
        return outputs + self._give_up(now)

    # Queries

    def deadline(self, now: int) -> int | None:
        """When `on_tick` has something to do next."""
        return earliest((self._dissemination.deadline, self._gaps.deadline, self.release_at(now)))

    def release_at(self, now: int) -> int | None:
        """When the time of the next message has come."""
        due = self._delta.next_at
        return None if due is None else now + max(0, due - self._clock.time(now))

    @property
    def in_flight(self) -> int:
        """How many messages of this member are being transmitted."""
        return self._dissemination.in_flight

    @property
    def held(self) -> int:
        """How many messages cannot be delivered yet."""
        return self._fifo.held + self._causal.held + self._delta.held

    @property
    def history(self) -> tuple[Predecessor, ...]:
        """The causal history of the next message."""
        return tuple(self._causal.history.values())

    @property
    def has_history_room(self) -> bool:
        """Whether a message can carry the causal history: it must fit into a frame."""
        history = self._causal.history
        if len(history) >= HISTORY_MAX:
            return False
        return sum(len(each.recipients) for each in history.values()) < HISTORY_RECIPIENTS_MAX

    def open_from(self, number: int) -> int:
        """The first message of this member that is still transmitted; `number` is that of the next one."""
        return self._dissemination.open_from(number)

    def previous(self, recipients: Iterable[ProcessId], number: int, counts: bool) -> tuple[int, ...]:
        """The message before this one, for each recipient; if it `counts`, later messages wait for it."""
        found = tuple(self._last_to.get(each, 0) for each in recipients)
        if counts:
            self._last_to.update(dict.fromkeys(recipients, number))
        return found

    # Steps

    def _rejection(self, data: ServiceData, now: int) -> str:
        """Why this message cannot be accepted now; empty if it can. One that others wait for makes room."""
        if not self._has_room() and not self._gaps.awaits(data.id):
            return "no room"
        if data.quality.kind is QualityKind.DELTA:
            return self._delta.rejection(data, self._clock.time(now), self._clock.precision_ns(now))
        if data.quality.kind in FIFO_KINDS and self._fifo.is_overtaken(data):
            return OVERTAKEN
        return ""

    def _ordered(self, outputs: list[ServiceOutput], now: int) -> list[ServiceOutput]:
        """Replace arrivals by what can be delivered because of them."""
        result: list[ServiceOutput] = []
        for output in outputs:
            match output:
                case Arrived(data):
                    self._gaps.on_arrived(data.id)
                    self._on_arrived(data, result)
                    result += self._released(now)
                case GivenUp(data):
                    self._gaps.on_arrived(data.id)
                    if data.quality.kind in FIFO_KINDS:
                        self._fifo.on_given_up(data.id, data.open_from)
                    result += self._released(now)
                case Settled(message):
                    self._causal.on_settled(message)
                case _:
                    result.append(output)
        return result

    def _on_arrived(self, data: ServiceData, result: list[ServiceOutput]) -> None:
        match data.quality.kind:
            case QualityKind.CAUSAL:
                result += [Deliver(each) for each in self._causal.on_arrived(data)]
            case QualityKind.DELTA:
                self._delta.on_arrived(data)
            case _:
                result += [Deliver(each) for each in self._fifo.on_arrived(data)]

    def _released(self, now: int) -> list[ServiceOutput]:
        """What was held back and need not wait any more; ask about what is still missing."""
        released: list[ServiceData] = []
        for order in (self._fifo, self._causal):
            if order.held:
                released += order.release()
                for message in order.awaited():
                    self._gaps.await_message(message, now)
        for predecessor in self._causal.take_heard_of():
            self._gaps.await_settlement(predecessor, now)
        outputs: list[ServiceOutput] = [Deliver(data) for data in released]
        return outputs + self._give_up(now)

    def _give_up(self, now: int) -> list[ServiceOutput]:
        """Do not wait any more for messages that will not come."""
        closed = self._gaps.take_closed()
        for message in closed:
            if message in self._causal.history:
                self._causal.on_left(message)
            else:
                self._received.add(message)
                self._fifo.on_given_up(message)
        return self._released(now) if closed else []

    def _status_of(self, peer: ProcessId, message: TransmissionId) -> list[ServiceOutput]:
        """Send the message again, or say that nobody has to wait for it; otherwise the peer asks again."""
        data = self._dissemination.find(message) or self._causal.find(message)
        if data is not None:
            return [Multicast((peer,), data)] if peer in data.recipients else []
        known = self._causal.history.get(message)
        is_open = known is not None and peer not in known.recipients
        return [] if is_open else [Multicast((peer,), Closed(message))]
