"""The qualities of service as a member uses them: frames in and out, receipts, suspects and figures.

    send ─▶ requests checked ─▶ Services ─▶ frames for the network      receipts ─▶ the driver
    head ◀───────────────────── Services ◀─ frames from the network     suspects ─▶ membership

The state machine behind it exists once it is needed: when this member sends a message with a quality, when a
frame of another member comes, or, on a network on which clocks are synchronised, from the first view on. A
group that uses no quality pays nothing for them.
"""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from priocast.core.errors import PeerFault, Rejected
from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.quality import Quality, QualityKind
from priocast.core.view import View
from priocast.links.frame import Frame
from priocast.services.frames import read_service_frame, service_frames
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, SendReceipt
from priocast.services.packets import ServiceData, TransmissionId
from priocast.services.requests import RequestCheck, check_units
from priocast.services.services import Services


class ServiceObserver(Protocol):
    """Sees what is sent and delivered with a quality of service."""

    def service_sent(self, data: ServiceData, now: int) -> None: ...
    def service_delivered(self, unit: ServiceDelivery, now: int) -> None: ...
    def service_finished(self, receipt: SendReceipt, now: int) -> None: ...


class QualityCounts(msgspec.Struct):
    """What one member did with one quality.

    `sent` counts its messages, `accepted` and `rejected` what became of them. `delivered` counts the units
    that its application took, `late` those of them that were outside of their window, `retransmissions` the
    frames with which it repeated messages of any member.
    """

    sent: int = 0
    accepted: int = 0
    rejected: int = 0
    delivered: int = 0
    retransmissions: int = 0
    late: int = 0


class ServiceHost:
    """One member's qualities of service. The driver takes the `receipts`, the member the `suspects`.

    `in_use`: this member has something to do with qualities. `has_frames`: there are frames to transmit.
    `is_strict`: a process that sends what no correct member sends is at fault. In a partitionable group, what
    it says may be outdated since the partition: it is only rejected.
    """

    def __init__(
        self,
        me: ProcessId,
        options: ServiceOptions | None,
        observer: ServiceObserver | None,
        *,
        is_strict: bool,
    ) -> None:
        self.options = options or ServiceOptions()
        self.in_use = False
        self.turn_is_due = False
        self.has_frames = False
        self.receipts: list[SendReceipt] = []
        self.suspects: list[ProcessId] = []
        self._me = me
        self._observer = observer
        self._is_strict = is_strict
        self._view: View | None = None
        self._requests: RequestCheck | None = None
        self._services: Services | None = None
        self._counted: dict[QualityKind, QualityCounts] = {}
        self._kinds: dict[TransmissionId, QualityKind] = {}
        self._now = 0
        self._stopped_at: int | None = None
        self._deadline: int | None = None
        self._is_deadline_known = True

    # Inputs

    def on_view(self, view: View, now: int) -> None:
        """A view was installed."""
        self._view, self._requests = view, RequestCheck(view, self.options)
        if self._services is not None:
            self._services.on_view(view, now)
            self._after_input(self._services, now)
        elif self.options.is_synchronised:
            self._start(view, now)

    def receive(self, peer: ProcessId, frame: Frame, now: int) -> None:
        """A frame came from a process; those that are not in the view have no part in anything.

        Raises PeerFault if no correct member sends such a frame; what was rejected changed nothing.
        """
        view = self._view
        if view is None or peer not in view.members:
            return
        packet = read_service_frame(peer, frame)
        services = self._services or self._start(view, now)
        try:
            services.receive(peer, packet, now)
        except Rejected as error:
            if not self._is_strict:
                raise
            services.rejections[error.reason] += 1
            raise PeerFault(str(error)) from error
        self._after_input(services, now)

    def tick(self, now: int, heard_at: int, *, is_settled: bool = True) -> None:
        """Do what is due at this time; `heard_at` is when any other process was heard last.

        If a timer expires while the whole network is silent, all timers stop: until somebody is heard, or
        the network is silent for longer than it may be. They also stop until the view is settled.
        """
        services = self._services
        if services is None:
            return
        is_excused = not is_settled or self._is_excused(now - heard_at)
        if self._stopped_at is not None and is_settled and (not is_excused or heard_at > self._stopped_at):
            services.on_inaccessible(now - self._stopped_at)
            self._stopped_at = None
            is_excused = False  # heard since: if nobody is heard just now, that is another silence
            self._after_input(services, now)
        deadline = self.deadline
        if deadline is None or now < deadline:
            return
        if is_excused:
            if self._stopped_at is None:
                self._stopped_at = now
            services.release(now)
        else:
            services.tick(now)
        self._after_input(services, now)

    def check(
        self,
        units: Sequence[bytes],
        quality: Quality,
        to: Collection[str] | None,
        now: int,
        deadline: int | None = None,
    ) -> tuple[ProcessId, ...]:
        """The recipients of a message of these units; raises InvalidInput if it cannot be sent like that.

        `to` are the names of the recipients, None stands for all members. `deadline` is when the caller stops
        waiting for the receipt.
        """
        assert self._view is not None and self._requests is not None, "a member sends in a view"
        check_units(units)
        services = self._services or self._start(self._view, now)
        return self._requests.recipients(quality, to, now, deadline, services.clock.precision_ns)

    def send(
        self,
        units: Sequence[bytes],
        quality: Quality,
        to: Collection[str] | None,
        priority: int,
        now: int,
        deadline: int | None = None,
    ) -> TransmissionId:
        """Send a message in the next turn; raises Overloaded without room, otherwise what `check` raises."""
        recipients = self.check(units, quality, to, now, deadline)
        services = self._services
        assert services is not None
        message = services.send(units, quality, recipients, priority, now)
        self._kinds[message] = quality.kind
        self._counts(quality.kind).sent += 1
        if self._observer is not None:
            data = ServiceData(message, 1, quality, recipients, priority, tuple(units))
            self._observer.service_sent(data, now)
        self.turn_is_due = True
        self._is_deadline_known = False
        return message

    def turn(self, now: int) -> None:
        """All inputs that were ready were given: start the transmissions of what was sent."""
        assert self._services is not None
        self.turn_is_due = False
        self._services.turn(now)
        self._after_input(self._services, now)

    def answer(self, now: int) -> None:
        """Answer everything that was received: this member is about to leave."""
        if self._services is not None:
            self._services.answer()
            self._after_input(self._services, now)

    def take(self, now: int) -> ServiceDelivery | None:
        """The application takes the head, if there is one."""
        unit = self._services.take(now) if self._services is not None else None
        if unit is not None and self._observer is not None:
            self._observer.service_delivered(unit, now)
        return unit

    # Queries

    def head(self) -> ServiceDelivery | None:
        """The unit that the application can take next."""
        return self._services.head() if self._services is not None else None

    @property
    def ready_alone(self) -> deque[ServiceDelivery] | None:
        """The units that the application can take one after the other, without asking for the head again.

        None if it must ask: other queues have units as well, or an observer sees each unit.
        """
        if self._services is None or self._observer is not None:
            return None
        return self._services.ready_alone

    @property
    def counts(self) -> dict[QualityKind, QualityCounts]:
        """What this member did with each quality that it has used."""
        if self._services is not None:
            for kind, delivered in self._services.delivered.items():
                self._counts(kind).delivered = delivered
            if self._services.late:
                self._counts(QualityKind.DELTA).late = self._services.late
        return self._counted

    def room(self, quality: Quality) -> bool:
        """Whether a message of this quality can be sent now; otherwise wait for a receipt."""
        return self._services is None or self._services.room(quality)

    @property
    def in_flight(self) -> int:
        """How many messages of this member are being transmitted."""
        return self._services.in_flight if self._services is not None else 0

    @property
    def held(self) -> int:
        """How much this member holds that its application has not taken."""
        return self._services.held if self._services is not None else 0

    @property
    def idle(self) -> bool:
        """Whether no member waits for this one."""
        return self._services is None or self._services.idle

    def precision_ns(self, now: int) -> int | None:
        """How far this member's clock and the coordinator's can be apart; None if that is not known."""
        if self._services is None or not self.options.is_synchronised:
            return None
        return self._services.clock.precision_ns(now)

    @property
    def rejections(self) -> dict[str, int]:
        """The messages of others that this member could not accept, by reason."""
        return dict(self._services.rejections) if self._services is not None else {}

    @property
    def deadline(self) -> int | None:
        """When `tick` has something to do next; only the clock counts while timers are stopped."""
        if not self._is_deadline_known and self._services is not None:
            services, is_stopped = self._services, self._stopped_at is not None
            self._deadline = services.release_at(self._now) if is_stopped else services.deadline(self._now)
            self._is_deadline_known = True
        return self._deadline

    # Outputs

    def take_frames(self) -> list[tuple[str, list[Frame]]]:
        """The frames to transmit, by the name of their destination."""
        services = self._services
        if services is None:
            return []
        multicasts, services.multicasts = services.multicasts, []
        self.has_frames = False
        self._count_retransmissions(multicasts)
        return service_frames(multicasts)

    # Steps

    def _start(self, view: View, now: int) -> Services:
        self._services = services = Services(self._me, self.options)
        self.in_use = True
        services.on_view(view, now)
        self._after_input(services, now)
        return services

    def _after_input(self, services: Services, now: int) -> None:
        """Pass on what an input has led to."""
        self._now = now
        self._is_deadline_known = False
        self.has_frames = bool(services.multicasts)
        if services.suspects:
            self.suspects += services.suspects
            services.suspects.clear()
        for receipt in services.receipts:
            counts = self._counts(self._kinds.pop(receipt.message))
            counts.accepted += receipt.accepted
            counts.rejected += not receipt.accepted
            self.receipts.append(receipt)
            if self._observer is not None:
                self._observer.service_finished(receipt, now)
        services.receipts.clear()

    def _is_excused(self, silence_ns: int) -> bool:
        return self.options.response_ns // 2 <= silence_ns < self.options.network.inaccessibility_ns

    def _counts(self, kind: QualityKind) -> QualityCounts:
        if (counts := self._counted.get(kind)) is not None:
            return counts
        return self._counted.setdefault(kind, QualityCounts())

    def _count_retransmissions(self, multicasts: list[Multicast]) -> None:
        for multicast in multicasts:
            packet = multicast.packet
            if isinstance(packet, ServiceData) and packet.retry > 1:
                self._counts(packet.quality.kind).retransmissions += 1
