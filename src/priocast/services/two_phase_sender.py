"""The sender of atomic and tight messages (xAMp, Figure 5, left).

First phase: the message is transmitted until every recipient has answered. On a network with network
order all must have answered the same transmission. Second phase: if no recipient rejected it, the sender
accepts the message, otherwise it rejects it, and announces the decision.

The messages of one member are sent one after the other, so that they are delivered in that order; those of
another priority (tight) do not wait for each other. Messages that wait can share the next transmission.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable

import msgspec

from priocast.core.identity import ProcessId
from priocast.links.transmission import Transmission, earliest
from priocast.services.announcements import Announcements
from priocast.services.insertion import Point, common_point, point_of_unit
from priocast.services.options import ServiceOptions
from priocast.services.outgoing import take_joined
from priocast.services.outputs import Finished, Multicast, SendReceipt, ServiceOutput, Suspected
from priocast.services.packets import (
    DECISIONS_KEPT,
    REASON_LENGTH_MAX,
    Closed,
    MessageDecision,
    Response,
    ServiceData,
    ServicePacket,
    TransmissionId,
    Undecided,
    repeated,
)
from priocast.services.present import PresentMembers


class TwoPhaseSender:
    """The messages that one member has sent with these qualities, until they are decided."""

    def __init__(
        self,
        options: ServiceOptions,
        present: PresentMembers,
        announcements: Announcements,
        in_network_order: bool,
        preempts: bool,
    ) -> None:
        self._options = options
        self._present = present
        self._announcements = announcements
        self._in_network_order = in_network_order
        self._preempts = preempts
        self._lanes: dict[int, _SendLane] = {}
        self._collecting: dict[TransmissionId, tuple[ServiceData, Transmission[Response]]] = {}
        self._decisions: OrderedDict[TransmissionId, MessageDecision] = OrderedDict()

    # Inputs

    def on_send(self, data: ServiceData, clock: Point, now: int) -> list[ServiceOutput]:
        """The application sends a message; it must follow what was delivered here, up to `clock`."""
        lane = self._lanes.setdefault(self._lane_of(data), _SendLane())
        lane.point = max(lane.point, clock)
        lane.waiting.append(data)
        return self._start_next(lane, now)

    def on_response(self, peer: ProcessId, response: Response, now: int) -> list[ServiceOutput]:
        """A recipient has the message, or rejects it."""
        if response.id not in self._collecting:
            return []
        self._collecting[response.id][1].on_response(peer, response.retry, response)
        return self._decide(response.id, now)

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Transmit again what was not answered in time."""
        outputs: list[ServiceOutput] = []
        for data, transmission in list(self._collecting.values()):
            if transmission.on_tick(now):
                outputs.append(Multicast(data.recipients, repeated(data, transmission.retry)))
            outputs += self._decide(data.id, now)
        return outputs

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later."""
        for _, transmission in self._collecting.values():
            transmission.on_inaccessible(duration_ns)

    def on_departures(self, departed: Iterable[ProcessId], now: int) -> list[ServiceOutput]:
        """These processes have left the view: their responses are no longer awaited."""
        outputs: list[ServiceOutput] = []
        for message, (_, transmission) in list(self._collecting.items()):
            for process in departed:
                transmission.on_departure(process)
            outputs += self._decide(message, now)
        return outputs

    # Queries

    def status_of(self, message: TransmissionId) -> ServicePacket:
        """The answer to a recipient that waits: the decision that was made, not one that it might expect."""
        if message in self._collecting:
            return Undecided(message)
        return self._decisions.get(message) or Closed(message)

    @property
    def deadline(self) -> int | None:
        """When `on_tick` has something to do next."""
        return earliest(transmission.waits_until for _, transmission in self._collecting.values())

    @property
    def in_flight(self) -> int:
        """How many messages of this member are undecided."""
        return len(self._collecting) + sum(len(lane.waiting) for lane in self._lanes.values())

    # Steps

    def _start_next(self, lane: "_SendLane", now: int) -> list[ServiceOutput]:
        if lane.busy or not lane.waiting:
            return []
        lane.busy = True
        waiting = take_joined(lane.waiting)
        recipients = self._present.among(waiting.recipients)
        data = msgspec.structs.replace(waiting, recipients=recipients, clock=lane.point)
        transmission: Transmission[Response] = Transmission(
            recipients,
            timeout_ns=self._options.response_ns,
            retries_max=self._options.transmissions_max,
            same_retry=self._in_network_order,
        )
        self._collecting[data.id] = data, transmission
        transmission.start(now)
        return [Multicast(recipients, data), *self._decide(data.id, now)]

    def _decide(self, message: TransmissionId, now: int) -> list[ServiceOutput]:
        data, transmission = self._collecting[message]
        if not (transmission.complete or transmission.exhausted):
            return []
        del self._collecting[message]
        receipt = _receipt(message, transmission)
        responses = transmission.responses.values()
        point = common_point((each.lowest, each.before) for each in responses) if receipt.accepted else ()
        decision = MessageDecision(message, 0, receipt.accepted, point, _reason(receipt))
        self._decisions[message] = decision
        if len(self._decisions) > DECISIONS_KEPT:
            self._decisions.popitem(last=False)
        recipients = self._present.among(data.recipients)
        acknowledged = data.quality.acknowledged
        outputs = self._announcements.announce(decision, recipients, now, acknowledged=acknowledged)
        if transmission.exhausted:
            outputs += [Suspected(process) for process in transmission.silent]
        lane = self._lanes[self._lane_of(data)]
        lane.busy = False
        if point:
            count = len(data.units)
            lane.point = max(lane.point, point_of_unit(point, count - 1, count))
        return [*outputs, Finished(receipt, data.message_count), *self._start_next(lane, now)]

    def _lane_of(self, data: ServiceData) -> int:
        return data.priority if self._preempts else 0


class _SendLane:
    """Messages that are sent one after the other, each after the `point` of the one before."""

    def __init__(self) -> None:
        self.waiting: deque[ServiceData] = deque()
        self.busy = False
        self.point: Point = ()


def _receipt(message: TransmissionId, transmission: Transmission[Response]) -> SendReceipt:
    responses = transmission.responses
    rejected = {process.name: each.reason for process, each in responses.items() if each.reason}
    return SendReceipt(
        message=message,
        accepted=transmission.complete and bool(responses) and not rejected,
        answered=tuple(process.name for process, each in responses.items() if not each.reason),
        rejected=rejected,
        missing=tuple(process.name for process in transmission.missing),
        rounds=transmission.retry,
    )


def _reason(receipt: SendReceipt) -> str:
    if receipt.accepted:
        return ""
    reasons = ", ".join(f"{name}: {reason}" for name, reason in receipt.rejected.items())
    return (reasons or "no answer")[:REASON_LENGTH_MAX]
