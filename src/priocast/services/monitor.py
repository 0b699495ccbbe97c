"""The monitor: decides about messages whose senders have failed (xAMp, section 5.5).

A recipient that has waited in vain becomes the monitor of the message: the first one at once, the others in
turn, later. It asks all recipients what they know, and decides:

    some recipient accepted it               accept, at the same point
    some recipient rejected it               reject
    all hold the same transmission of it     accept: the sender may have done so
    otherwise                                reject: the sender cannot have accepted it

A monitor has a higher epoch than those before it. A recipient that has answered an epoch ignores lower
ones, so that two monitors cannot decide differently. If a recipient has answered a later monitor, or first
has to learn about an earlier message of the same sender, the monitor gives up, and tries again later.
"""

from collections.abc import Iterable

from priocast.core.identity import ProcessId
from priocast.links.transmission import Transmission, earliest
from priocast.services.announcements import Announcements
from priocast.services.insertion import common_point
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, ServiceOutput, Suspected
from priocast.services.packets import (
    RECIPIENTS_MAX,
    Inquiry,
    Knowledge,
    MessageDecision,
    Report,
    ServiceData,
    TransmissionId,
)
from priocast.services.present import PresentMembers


class Monitor:
    """The messages that one member decides about on behalf of failed senders."""

    def __init__(
        self,
        me: ProcessId,
        options: ServiceOptions,
        present: PresentMembers,
        announcements: Announcements,
        in_network_order: bool,
    ) -> None:
        self._me = me
        self._options = options
        self._present = present
        self._announcements = announcements
        self._in_network_order = in_network_order
        self._inquiries: dict[TransmissionId, tuple[ServiceData, Inquiry, Transmission[Report]]] = {}

    # Inputs

    def on_orphan(self, data: ServiceData, epoch: int, now: int) -> list[ServiceOutput]:
        """A message has no sender any more; `epoch` is the highest one that this member knows of."""
        if data.id in self._inquiries or self._announcements.has(data.id):
            return []
        # Epochs of different monitors differ: the rank of the monitor is part of the number.
        rank = data.recipients.index(self._me)
        inquiry = Inquiry(data.id, (epoch // RECIPIENTS_MAX + 1) * RECIPIENTS_MAX + rank)
        recipients = self._present.among(data.recipients)
        transmission: Transmission[Report] = Transmission(
            recipients, timeout_ns=self._options.response_ns, retries_max=self._options.transmissions_max
        )
        transmission.start(now)
        self._inquiries[data.id] = data, inquiry, transmission
        return [Multicast(recipients, inquiry)]

    def on_report(self, peer: ProcessId, report: Report, now: int) -> list[ServiceOutput]:
        """A recipient says what it knows."""
        found = self._inquiries.get(report.id)
        if found is None or report.epoch != found[1].epoch:
            return []
        if report.knowledge is Knowledge.WAITS:
            del self._inquiries[report.id]
            return []
        transmission = found[2]
        transmission.on_response(peer, transmission.retry, report)
        return self._decide(report.id, now)

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Ask again."""
        outputs: list[ServiceOutput] = []
        for data, inquiry, transmission in list(self._inquiries.values()):
            if transmission.on_tick(now):
                outputs.append(Multicast(tuple(transmission.missing), inquiry))
            if transmission.exhausted:
                outputs += [Suspected(process) for process in transmission.silent]
                del self._inquiries[data.id]
        return outputs

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later."""
        for _, _, transmission in self._inquiries.values():
            transmission.on_inaccessible(duration_ns)

    def on_departures(self, departed: Iterable[ProcessId], now: int) -> list[ServiceOutput]:
        """These processes have left the view: they are no longer asked."""
        outputs: list[ServiceOutput] = []
        for message, (_, _, transmission) in list(self._inquiries.items()):
            for process in departed:
                transmission.on_departure(process)
            outputs += self._decide(message, now)
        return outputs

    # Queries

    @property
    def deadline(self) -> int | None:
        """When `on_tick` has something to do next."""
        if not self._inquiries:
            return None
        return earliest(transmission.waits_until for _, _, transmission in self._inquiries.values())

    # Steps

    def _decide(self, message: TransmissionId, now: int) -> list[ServiceOutput]:
        data, inquiry, transmission = self._inquiries[message]
        if not transmission.complete:
            return []
        del self._inquiries[message]
        decision = self._decision(inquiry, list(transmission.responses.values()))
        recipients = self._present.among(data.recipients)
        return self._announcements.announce(decision, recipients, now, acknowledged=True)

    def _decision(self, inquiry: Inquiry, reports: list[Report]) -> MessageDecision:
        accepted = next((each for each in reports if each.knowledge is Knowledge.ACCEPTED), None)
        if accepted is not None:
            return MessageDecision(inquiry.id, inquiry.epoch, True, accepted.lowest)
        all_hold = all(each.knowledge is Knowledge.HELD for each in reports)
        same_retry = len({each.retry for each in reports}) == 1 or not self._in_network_order
        if all_hold and same_retry:
            point = common_point((each.lowest, each.before) for each in reports)
            return MessageDecision(inquiry.id, inquiry.epoch, True, point)
        return MessageDecision(inquiry.id, inquiry.epoch, False, (), "the sender failed")
