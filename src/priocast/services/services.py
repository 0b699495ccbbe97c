"""The qualities of service of one member: what it sends with them, and what it receives.

    send ─▶ waiting ─▶ disseminated or agreed ─▶ multicasts for the network    receipts ─▶ the caller of send
    head ◀──────────── disseminated or agreed ◀─ packets from the network

`Services` is a state machine without I/O, beside the total order of the same group. When the driver has given
all inputs that were ready it calls `turn`, transmits the `multicasts`, takes the `receipts`, and calls `tick`
at the `deadline`. `suspects` are processes that did not answer although the network allows no more omissions;
if this member is one of them, it must leave.

Two limits bound the memory. A member sends no more while `in_flight_max` of its messages are transmitted:
there is no `room`. A recipient rejects messages while it holds `held_max`; `rejections` counts by reason.
`late` counts the units that this member delivered outside of their window.
"""

from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from priocast.core.errors import Overloaded
from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.quality import Quality, QualityKind
from priocast.core.view import View
from priocast.links.transmission import earliest
from priocast.services.accept_queues import AcceptQueue
from priocast.services.agreed import AgreedQuality
from priocast.services.clock import VirtualClock
from priocast.services.delta_order import DeliveryWindow
from priocast.services.disseminated import DisseminatedQualities
from priocast.services.later_responses import LaterResponses
from priocast.services.options import ServiceOptions
from priocast.services.outgoing import receipts_of, take_joined
from priocast.services.outputs import Deliver, Finished, Multicast, SendReceipt, ServiceOutput, Suspected
from priocast.services.packets import (
    OPEN_MAX,
    STREAMS,
    MessagePacket,
    Predecessor,
    Response,
    ServiceData,
    ServicePacket,
    ServiceStream,
    TimeReply,
    TimeRequest,
    TransmissionId,
)
from priocast.services.present import PresentMembers
from priocast.services.units import deliveries_of
from priocast.services.validation import check_packet


class Services:
    """One member's part in all qualities of service."""

    def __init__(self, me: ProcessId, options: ServiceOptions) -> None:
        self._me = me
        self._options = options
        self._present = PresentMembers()
        self._numbers = dict.fromkeys(ServiceStream, 0)
        self._waiting: dict[ServiceStream, deque[ServiceData]] = {each: deque() for each in ServiceStream}
        self.clock = VirtualClock(me)
        self._later = LaterResponses(options.response_ns)
        self._window = DeliveryWindow(options.precision_ns, self.clock)
        self._disseminated = DisseminatedQualities(me, options, self._present, self.clock, self._can_hold)
        self._agreed = {
            ServiceStream.ATOMIC: AgreedQuality(me, options, self._present, self._can_hold, preempts=False),
            ServiceStream.TIGHT: AgreedQuality(me, options, self._present, self._can_hold, preempts=True),
        }
        self._with_points = [ServiceStream.TIGHT]
        if not options.in_network_order:
            self._with_points.append(ServiceStream.ATOMIC)
        # Those of the agreed qualities that were ever used here: the others have nothing to do.
        self._used: list[AgreedQuality] = []
        self._queues: list[AcceptQueue] = []
        self._ready: deque[ServiceDelivery] = deque()
        self._released: Counter[QualityKind] = Counter()  # units that were ever ready, or taken from a queue
        self._to_myself: deque[ServicePacket] = deque()
        self.multicasts: list[Multicast] = []
        self.receipts: list[SendReceipt] = []
        self.suspects: list[ProcessId] = []
        self.rejections: Counter[str] = Counter()
        self.late = 0

    # Inputs

    def send(
        self, units: Sequence[bytes], quality: Quality, to: Sequence[ProcessId], priority: int, now: int
    ) -> TransmissionId:
        """Send a message to these members, in the next turn. `RequestCheck` has accepted it."""
        if not self.room(quality):
            raise Overloaded(f"{self.in_flight} messages are being transmitted: wait for a receipt")
        stream = STREAMS.get(quality.kind, ServiceStream.DISSEMINATED)
        self._numbers[stream] += 1
        message = TransmissionId(self._me, stream, self._numbers[stream])
        clock = (self.clock.time(now),) if quality.kind is QualityKind.DELTA else ()
        data = ServiceData(message, 1, quality, tuple(to), priority, tuple(units), clock=clock)
        self._waiting[stream].append(data)
        return message

    def turn(self, now: int) -> None:
        """All inputs that were ready were given: start the transmissions of what was sent."""
        for stream, waiting in self._waiting.items():
            while waiting:
                data = take_joined(waiting)
                if stream is ServiceStream.DISSEMINATED:
                    outputs = self._disseminated.on_send(self._completed(data), now)
                else:
                    outputs = self._agreed_quality(stream).on_send(data, now)
                self._carry_out(outputs, now)

    def receive(self, peer: ProcessId, packet: ServicePacket, now: int) -> None:
        """A packet came from another process; those that are not members have no part in anything.

        Raises PeerFault, and has changed nothing, if no correct member sends such a packet.
        """
        if peer in self._present:
            self._carry_out(self._received(peer, packet, now), now)

    def tick(self, now: int) -> None:
        """Do what is due at this time."""
        self.turn(now)
        self.multicasts += self._later.on_tick(now)
        outputs = self.clock.on_tick(now) if self._options.is_synchronised else []
        outputs += self._disseminated.on_tick(now)
        for agreed in self._used:
            outputs += agreed.on_tick(now)
        self._carry_out(outputs, now)

    def release(self, now: int) -> None:
        """Deliver what is due by the clock, and answer, while all timers are stopped."""
        self.multicasts += self._later.on_tick(now)
        self._carry_out(self._disseminated.on_time(now), now)

    def answer(self) -> None:
        """Transmit all responses that wait: this member is about to leave."""
        self.multicasts += self._later.take()

    def on_view(self, view: View, now: int) -> None:
        """The members have changed."""
        self.turn(now)
        departed = self._present.on_view(view)
        self.clock.on_view(view, now)
        outputs = self._disseminated.on_departures(departed, now)
        for agreed in self._used:
            outputs += agreed.on_departures(departed, now)
        self._carry_out(outputs, now)

    def on_inaccessible(self, duration_ns: int) -> None:
        """The whole network was silent for so long, which is no failure of anybody: timers expire later."""
        self._disseminated.on_inaccessible(duration_ns)
        for agreed in self._agreed.values():
            agreed.on_inaccessible(duration_ns)

    def take(self, now: int) -> ServiceDelivery | None:
        """The application takes the head, if there is one; a unit that is late says so."""
        queue, unit = self._first()
        if unit is None:
            return None
        if queue is not None:
            queue.take()
            self._released[unit.quality.kind] += 1
            return unit
        self._ready.popleft()
        if unit.quality.kind is QualityKind.DELTA:
            unit = self._window.judged(unit, now)
            self.late += unit.late_ms > 0
        return unit

    # Queries

    def head(self) -> ServiceDelivery | None:
        """The unit that the application can take next: of the most urgent quality that has one."""
        if not self._queues:
            return self._ready[0] if self._ready else None
        return self._first()[1]

    @property
    def ready_alone(self) -> deque[ServiceDelivery] | None:
        """The units that the application can take one after the other.

        None if it must `take` each: queues have to be compared, or units can be late.
        """
        return None if self._queues or self._options.is_synchronised else self._ready

    @property
    def delivered(self) -> Counter[QualityKind]:
        """How many units the application has taken."""
        return self._released - Counter(unit.quality.kind for unit in self._ready)

    def deadline(self, now: int) -> int | None:
        """When `tick` has something to do next: at once if a turn is due."""
        if any(self._waiting.values()):
            return now
        of_clock = self.clock.deadline if self._options.is_synchronised else None
        of_agreed = (each.deadline for each in self._used)
        return earliest((of_clock, self._later.deadline, self._disseminated.deadline(now), *of_agreed))

    def release_at(self, now: int) -> int | None:
        """When `release` has something to do next."""
        return earliest((self._later.deadline, self._disseminated.release_at(now)))

    def room(self, quality: Quality) -> bool:
        """Whether a message of this quality can be sent now; otherwise wait for a receipt."""
        if quality.kind is QualityKind.CAUSAL and not self._disseminated.has_history_room:
            return False
        if quality.kind not in STREAMS and self._open_span >= OPEN_MAX:
            return False
        return self.in_flight < self._options.in_flight_max

    @property
    def idle(self) -> bool:
        """Whether nothing is transmitted or awaited here, by this member or on behalf of others."""
        times = (
            self._later.deadline,
            self._disseminated.deadline(0),
            *(each.deadline for each in self._used),
        )
        return self.in_flight == 0 and earliest(times) is None

    @property
    def in_flight(self) -> int:
        """How many messages of this member are being transmitted."""
        waiting = sum(map(len, self._waiting.values()))
        return waiting + self._disseminated.in_flight + sum(each.in_flight for each in self._used)

    @property
    def held(self) -> int:
        """How much this member holds that its application has not taken."""
        return self._disseminated.held + len(self._ready) + sum(each.held for each in self._queues)

    # Steps

    @property
    def _open_span(self) -> int:
        """How far the first disseminated message that is still transmitted and the next one are apart."""
        following = self._numbers[ServiceStream.DISSEMINATED] + 1
        waiting = self._waiting[ServiceStream.DISSEMINATED]
        return following - self._disseminated.open_from(waiting[0].id.number if waiting else following)

    def _completed(self, data: ServiceData) -> ServiceData:
        """The message with what its recipients must know about those before it."""
        disseminated, quality, number = self._disseminated, data.quality, data.id.number
        previous: tuple[int, ...] = ()
        history: tuple[Predecessor, ...] = ()
        match quality.kind:
            case QualityKind.CAUSAL:
                history = disseminated.history
            case QualityKind.BEST_EFFORT | QualityKind.AT_LEAST | QualityKind.RELIABLE:
                previous = disseminated.previous(data.recipients, number, counts=quality.count != 0)
        open_from = disseminated.open_from(number)
        return msgspec.structs.replace(data, open_from=open_from, previous=previous, history=history)

    def _received(self, peer: ProcessId, packet: ServicePacket, now: int) -> list[ServiceOutput]:
        match packet:
            case TimeRequest():
                return self.clock.on_request(peer, packet, now)
            case TimeReply():
                self.clock.on_reply(peer, packet, now)
                return []
        assert isinstance(packet, MessagePacket)
        stream = packet.id.stream
        if peer != self._me:
            has_points = stream in self._with_points
            check_packet(self._me, peer, packet, sent=self._numbers[stream], has_points=has_points)
        if stream is ServiceStream.DISSEMINATED:
            return self._disseminated.receive(peer, packet, now)
        return self._agreed_quality(stream).receive(peer, packet, now)

    def _agreed_quality(self, stream: ServiceStream) -> AgreedQuality:
        agreed = self._agreed[stream]
        if agreed not in self._used:
            self._used.append(agreed)
            self._queues.append(agreed.queue)
        return agreed

    def _carry_out(self, outputs: list[ServiceOutput], now: int) -> None:
        for output in outputs:
            match output:
                case Multicast(can_wait=True):
                    self._later.add(output, now)
                case Multicast(to, packet):
                    self._send(to, packet)
                case Deliver(data):
                    self._ready += deliveries_of(data)
                    self._released[data.quality.kind] += len(data.units)
                    if data.quality.kind is QualityKind.DELTA:
                        self._window.on_released(data, now)
                case Finished(receipt, message_count):
                    self.receipts += receipts_of(receipt, message_count)
                case Suspected(process):
                    self.suspects.append(process)
        while self._to_myself:
            self._carry_out(self._received(self._me, self._to_myself.popleft(), now), now)

    def _send(self, to: tuple[ProcessId, ...], packet: ServicePacket) -> None:
        """What is also for this member is received at once, unless the network decides about its order."""
        ordered = (
            isinstance(packet, ServiceData)
            and packet.id.stream is ServiceStream.ATOMIC
            and packet.id.stream not in self._with_points
        )
        others = to if ordered and len(to) > 1 else tuple(each for each in to if each != self._me)
        if isinstance(packet, Response) and packet.reason:
            self.rejections[packet.reason] += 1
        if len(others) < len(to):
            self._to_myself.append(packet)
        if others:
            self.multicasts.append(Multicast(others, packet))

    def _can_hold(self) -> bool:
        return self.held < self._options.held_max

    def _first(self) -> tuple[AcceptQueue | None, ServiceDelivery | None]:
        """The head, and the queue that it is in; None for one of a disseminated message."""
        queue_of_first, first = None, self._ready[0] if self._ready else None
        for queue in self._queues:
            unit = queue.head()
            if unit is not None and (first is None or unit.priority > first.priority):
                queue_of_first, first = queue, unit
        return queue_of_first, first
