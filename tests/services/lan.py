"""A small group of `Services` on a simulated network: omissions, crashes and views under control."""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import Quality
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, SendReceipt
from priocast.services.packets import (
    AnyServicePacket,
    MessagePacket,
    ServiceData,
    ServicePacket,
    TransmissionId,
)
from priocast.services.services import Services
from priocast.services.units import message_of
from priocast.trace.recorder import Recorder
from priocast.trace.schema import TraceRow

MS = 1_000_000
DELAY_MAX_MS = 4
Lose = Callable[[ProcessId, ProcessId, ServicePacket], bool]
_ORDERING = Ordering("sequencer-ub", True, "none")
_DECODER: msgspec.msgpack.Decoder[AnyServicePacket] = msgspec.msgpack.Decoder(AnyServicePacket)


def lose_nothing(source: ProcessId, target: ProcessId, packet: ServicePacket) -> bool:
    """A network without omissions."""
    return False


class Lan:
    """Members a, b, c, … that send with qualities of service; `lose` decides on omissions.

    With network order, a multicast reaches all its recipients at the same time. Every packet is encoded and
    decoded on its way. `rows` is the trace.
    """

    def __init__(
        self,
        size: int,
        *,
        seed: int = 0,
        ordered: bool = True,
        omission_degree: int | None = 2,
        lose: Lose = lose_nothing,
        detect_ms: int = 300,
        held_max: int = 4096,
        in_flight_max: int = 256,
    ) -> None:
        self.random = random.Random(seed)
        self.ids = [ProcessId(chr(ord("a") + index), 1) for index in range(size)]
        self.now = 0
        self.lose = lose
        self.ordered = ordered
        self.detect_ns = detect_ms * MS
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0
        self._medium_free = 0
        self._tick_at: dict[ProcessId, int] = {}
        properties = NetworkProperties(
            broadcast=ordered,
            error_detection=True,
            omission_degree=omission_degree,
            full_duplex=ordered,
            network_order=ordered,
            delay_ns=DELAY_MAX_MS * MS,
        )
        self.options = ServiceOptions(
            network=properties, response_ms=10.0, held_max=held_max, in_flight_max=in_flight_max
        )
        self.services = {each: Services(each, self.options) for each in self.ids}
        self.alive = list(self.ids)
        self.view = View(1, tuple(self.ids))
        self.delivered: dict[ProcessId, list[tuple[TransmissionId, int]]] = {each: [] for each in self.ids}
        self.rows: list[TraceRow] = []
        self._recorders = {each: Recorder(each, self.rows.append) for each in self.ids}
        self.receipts: dict[TransmissionId, SendReceipt] = {}
        self.suspected: set[ProcessId] = set()
        self.frames: list[tuple[str, ServicePacket]] = []
        self.late: Counter[ProcessId] = Counter()
        self.consume_at: dict[ProcessId, int] = dict.fromkeys(self.ids, 0)
        self._announce_view()

    def at(self, time: int, action: Callable[[], object]) -> None:
        """Do something at this time."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, action))

    def send(
        self, sender: int, quality: Quality, *, to: list[int] | None = None, priority: int = 1, units: int = 1
    ) -> TransmissionId:
        """A member sends a message of several units."""
        return self.send_together(1, sender, quality, to=to, priority=priority, units=units)[0]

    def send_together(
        self,
        count: int,
        sender: int,
        quality: Quality,
        *,
        to: list[int] | None = None,
        priority: int = 1,
        units: int = 1,
    ) -> list[TransmissionId]:
        """A member sends several messages in one turn."""
        recipients = [self.ids[index] for index in to] if to is not None else list(self.view.members)
        payloads = [b"%d" % index for index in range(units)]
        me, messages = self.ids[sender], list[TransmissionId]()

        def send(services: Services) -> None:
            for _ in range(count):
                message = services.send(payloads, quality, recipients, priority, self.now)
                data = ServiceData(message, 1, quality, tuple(recipients), priority, tuple(payloads))
                self._recorders[me].service_sent(data, self.now)
                messages.append(message)

        self._run(me, send)
        return messages

    def crash(self, index: int) -> None:
        """The process ends; the others learn it some time later, all in the same view."""
        self.alive.remove(self.ids[index])
        self.at(self.now + self.detect_ns, self.install_view)

    def stall(self, index: int, until: int) -> None:
        """The application of a member takes nothing until this time."""
        self.consume_at[self.ids[index]] = until
        self.at(until, lambda: self._run(self.ids[index], lambda _: None))

    def run(self, until_ms: int = 60_000) -> None:
        """Let everything happen until this time."""
        while self._events and self._events[0][0] <= until_ms * MS:
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = until_ms * MS

    def who_delivered(self, message: TransmissionId) -> str:
        """The names of the members that delivered a message."""
        return "".join(each.name for each in self.ids if (message, 0) in self.delivered[each])

    def frames_about(self, message: TransmissionId) -> list[ServicePacket]:
        """The packets about a message that were transmitted."""
        return [each for _, each in self.frames if isinstance(each, MessagePacket) and each.id == message]

    def receive(self, target: ProcessId, source: ProcessId, packet: ServicePacket) -> None:
        """A packet arrives."""
        self._run(target, lambda each: each.receive(source, packet, self.now))

    def install_view(self) -> None:
        """All members learn who is alive."""
        if tuple(self.alive) == self.view.members:
            return
        self.view = View(self.view.number + 1, tuple(self.alive))
        self._announce_view()

    def _announce_view(self) -> None:
        for each in list(self.alive):
            self._recorders[each].installed(self.view)
            self._recorders[each].view(self.view, _ORDERING, 0, ViewReason(), self.now)
            self._run(each, lambda member: member.on_view(self.view, self.now))

    def _run(self, me: ProcessId, action: Callable[[Services], object]) -> None:
        if me not in self.alive:
            return
        services = self.services[me]
        action(services)
        services.turn(self.now)
        self._consume(me)
        multicasts, services.multicasts = services.multicasts, []
        for multicast in multicasts:
            self._transmit(me, multicast)
        for receipt in services.receipts:
            assert receipt.message not in self.receipts, "one receipt per message"
            self.receipts[receipt.message] = receipt
            self._recorders[me].service_finished(receipt, self.now)
        services.receipts.clear()
        self.suspected.update(services.suspects)
        services.suspects.clear()
        self._schedule_tick(me)

    def _schedule_tick(self, me: ProcessId) -> None:
        deadline = self.services[me].deadline(self.now)
        if deadline is not None:
            at = max(deadline, self.now + 1)
            if at < self._tick_at.get(me, at + 1):
                self._tick_at[me] = at
                self.at(at, lambda: self._tick(me, at))

    def _tick(self, me: ProcessId, at: int) -> None:
        if self._tick_at.get(me) != at:
            return
        del self._tick_at[me]
        deadline = self.services[me].deadline(self.now)
        if deadline is not None and deadline <= self.now:
            self._run(me, lambda each: each.tick(self.now))
        else:
            self._schedule_tick(me)

    def _consume(self, me: ProcessId) -> None:
        services = self.services[me]
        while self.now >= self.consume_at[me] and (head := services.head()) is not None:
            unit = services.take(self.now)
            assert unit is not None and msgspec.structs.replace(unit, late_ms=0.0) == head
            self.late[me] += unit.late_ms > 0
            self.delivered[me].append((message_of(unit), unit.index))
            assert unit.payload == b"%d" % unit.index, "what was sent is delivered"
            self._recorders[me].service_delivered(unit, self.now)

    def _transmit(self, source: ProcessId, multicast: Multicast) -> None:
        self.frames.append((source.name, multicast.packet))
        self._medium_free = max(self._medium_free, self.now) + 10_000
        packet = _DECODER.decode(msgspec.msgpack.encode(multicast.packet))
        for target in multicast.to:
            if self.lose(source, target, packet):
                continue
            if self.ordered:
                arrival = self._medium_free + MS
            else:
                arrival = self.now + self.random.randint(MS // 10, DELAY_MAX_MS * MS)
            self.at(arrival, partial(self.receive, target, source, packet))
