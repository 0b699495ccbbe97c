"""Best effort, at least and reliable: who has received a message (xAMp, Figures 2 and 3).

A *best effort* message is transmitted by its sender until enough recipients have answered. If the sender
fails, some recipients may have it and others not. For *at least* every recipient that has received the
message is responsible as well: it collects the responses, which go to all, and transmits the message
itself if some are missing. A recipient waits longer than the sender, and the later ones longest, so that
one omission causes one retransmission. Of *n* recipients that must have it, the sender is not one. A
response can come before the message, by another link, and counts when the message is there.

*Causal* and *delta* disseminate their messages like *reliable*, and differ in when a recipient delivers them.
"""

from collections.abc import Callable, Iterable

from priocast.core.identity import ProcessId
from priocast.core.quality import Quality, QualityKind
from priocast.links.transmission import Transmission, TransmissionTimes
from priocast.services.options import ServiceOptions
from priocast.services.outputs import (
    Arrived,
    Finished,
    GivenUp,
    Multicast,
    SendReceipt,
    ServiceOutput,
    Settled,
    Suspected,
)
from priocast.services.packets import DECISIONS_KEPT, Response, ServiceData, TransmissionId, repeated
from priocast.services.present import PresentMembers
from priocast.services.received import ReceivedMessages

Rejection = Callable[[ServiceData, int], str]
"""Why a message that comes now cannot be delivered; empty if it can."""


class Dissemination:
    """One member's part in the messages of these qualities: its own, and those that it has received."""

    def __init__(
        self,
        me: ProcessId,
        options: ServiceOptions,
        present: PresentMembers,
        received: ReceivedMessages,
        rejection: Rejection,
    ) -> None:
        self._me = me
        self._options = options
        self._present = present
        self._received = received
        self._rejection = rejection
        self._running: dict[TransmissionId, _Running] = {}
        self._times = TransmissionTimes[TransmissionId]()
        self._mine: dict[int, None] = {}  # the numbers of this process's messages that are transmitted
        self._incomplete: dict[TransmissionId, list[ProcessId]] = {}  # causal ones, and who did not answer
        self._rejected: dict[TransmissionId, str] = {}
        self._early: dict[TransmissionId, dict[ProcessId, Response]] = {}  # to what has not come yet

    # Inputs

    def on_send(self, data: ServiceData, now: int) -> list[ServiceOutput]:
        """The application sends a message; if no answer is awaited, that was all."""
        if data.quality.count == 0:
            return [Multicast(data.recipients, data), Finished(self._unanswered(data), data.message_count)]
        self._mine[data.id.number] = None
        running = self._start(data, self._options.response_ns, now, send_first=True)
        return [Multicast(data.recipients, data), *self._ended(running)]

    def on_data(self, peer: ProcessId, data: ServiceData, now: int) -> list[ServiceOutput]:
        """A message came from its sender, or from a recipient on its behalf."""
        is_known = self._received.has(data.id)
        reason = self._rejected.get(data.id) or ("" if is_known else self._rejection(data, now))
        outputs: list[ServiceOutput] = []
        is_answered = data.quality.count != 0
        response = Response(data.id, data.retry, reason)
        if is_answered:
            outputs += self._answers(peer, data, response)
        if is_known and data.id in self._running and peer != self._me:
            self._running[data.id].transmission.on_sent_by_another(now)
        if not is_known:
            self._received.add(data.id, data.open_from)
            outputs += self._reject(data, reason) if reason else self._accept(data, now)
        if is_answered and not reason:
            outputs += self.on_response(self._me, response)
        return outputs

    def on_response(self, peer: ProcessId, response: Response) -> list[ServiceOutput]:
        """A recipient has a message, or cannot accept it."""
        running = self._running.get(response.id)
        if running is None:
            self._keep_early(peer, response)
            return []
        running.on_response(peer, response)
        return self._ended(running)

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Transmit again what was not answered in time."""
        outputs: list[ServiceOutput] = []
        for message in self._times.expired(now):
            running = self._running[message]
            if running.transmission.on_tick(now):
                outputs.append(self._repeated(running))
            outputs += self._ended(running)
        return outputs

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later."""
        for running in self._running.values():
            running.transmission.on_inaccessible(duration_ns)

    def on_departures(self, departed: Iterable[ProcessId]) -> list[ServiceOutput]:
        """These processes have left the view: they are no longer waited for."""
        outputs: list[ServiceOutput] = []
        for running in list(self._running.values()):
            for process in departed:
                running.transmission.on_departure(process)
            outputs += self._ended(running)
        for message, missing in list(self._incomplete.items()):
            missing[:] = self._present.among(missing)
            if not missing:
                del self._incomplete[message]
                outputs.append(Settled(message))
        return outputs

    # Queries

    @property
    def deadline(self) -> int | None:
        """When `on_tick` has something to do next."""
        return self._times.next_at

    def find(self, message: TransmissionId) -> ServiceData | None:
        """The message, while this member transmits it."""
        running = self._running.get(message)
        return running.data if running else None

    def open_from(self, number: int) -> int:
        """The first message of this process that is still transmitted, given the number of the next one."""
        return next(iter(self._mine), number)

    @property
    def in_flight(self) -> int:
        """How many messages of this process are being transmitted."""
        return len(self._mine)

    # Steps

    def _start(self, data: ServiceData, timeout_ns: int, now: int, send_first: bool) -> "_Running":
        quality = data.quality
        expected = [each for each in data.recipients if not quality.names or each.name in quality.names]
        if quality.kind is QualityKind.AT_LEAST and quality.count is not None and data.id.sender in expected:
            expected.remove(data.id.sender)  # it is the one that may fail
        transmission: Transmission[bool] = Transmission(
            self._present.among(expected),
            quality.count,
            timeout_ns=timeout_ns,
            retries_max=self._options.transmissions_max,
            send_first=send_first,
        )
        running = self._running[data.id] = _Running(data, transmission)
        transmission.start(now)
        self._times.add(data.id, transmission)
        return running

    def _unanswered(self, data: ServiceData) -> SendReceipt:
        """The receipt of a message that nobody answers."""
        missing = tuple(process.name for process in self._present.among(data.recipients))
        return SendReceipt(message=data.id, accepted=True, missing=missing, rounds=1)

    def _accept(self, data: ServiceData, now: int) -> list[ServiceOutput]:
        outputs: list[ServiceOutput] = [Arrived(data)]
        if recipients_transmit(data.quality) and data.id.sender != self._me:
            outputs += self._assume(data, now)
        return outputs

    def _assume(self, data: ServiceData, now: int) -> list[ServiceOutput]:
        """Become responsible for a message of another process, which has its message."""
        patience_ns = self._options.patience_ns(data.recipients.index(self._me))
        running = self._start(data, patience_ns, now, send_first=False)
        running.transmission.on_response(data.id.sender, 0, True)
        for peer, response in self._early.pop(data.id, {}).items():
            running.on_response(peer, response)
        return self._ended(running)

    def _keep_early(self, peer: ProcessId, response: Response) -> None:
        message = response.id
        if message.sender == self._me or self._received.has(message):
            return
        self._early.setdefault(message, {})[peer] = response
        if len(self._early) > DECISIONS_KEPT:
            del self._early[next(iter(self._early))]

    def _repeated(self, running: "_Running") -> Multicast:
        data, transmission = running.data, running.transmission
        to = data.recipients if self._options.network.broadcast else tuple(transmission.missing)
        return Multicast(to, repeated(data, transmission.retry))

    def _ended(self, running: "_Running") -> list[ServiceOutput]:
        """What follows if this transmission has ended."""
        data, transmission = running.data, running.transmission
        if data.id not in self._running or not (transmission.complete or transmission.exhausted):
            return []
        del self._running[data.id]
        outputs: list[ServiceOutput] = []
        if not transmission.missing:
            outputs.append(Settled(data.id))
        if transmission.exhausted:
            if data.quality.kind is QualityKind.CAUSAL:
                self._incomplete[data.id] = transmission.missing
            outputs += [Suspected(process) for process in transmission.silent]
        if data.id.sender == self._me:
            del self._mine[data.id.number]
            outputs.append(Finished(running.receipt, data.message_count))
        return outputs

    def _reject(self, data: ServiceData, reason: str) -> list[ServiceOutput]:
        """Remember it: a retransmission is rejected as well, because the receipt says that it was."""
        self._rejected[data.id] = reason
        self._early.pop(data.id, None)
        if len(self._rejected) > DECISIONS_KEPT:
            del self._rejected[next(iter(self._rejected))]
        return [GivenUp(data)]

    def _answers(self, peer: ProcessId, data: ServiceData, response: Response) -> list[ServiceOutput]:
        """The response to what `peer` transmitted, for those that wait for it.

        Where a frame does not reach all of them, those that neither sent nor transmitted the message can wait
        for it: they only learn that they need not transmit the message. Causal histories shrink with the
        responses, which must not be late therefore.
        """
        informed = self._informed(data, rejects=bool(response.reason))
        sender = data.id.sender
        is_shared = len(informed) > 1 and not response.reason and data.quality.kind is not QualityKind.CAUSAL
        if not is_shared or self._options.network.broadcast or sender not in informed:
            return [Multicast(informed, response)] if informed else []
        at_once = tuple(each for each in informed if each in (sender, peer))
        others = tuple(each for each in informed if each not in at_once)
        later = [Multicast(others, response, can_wait=True)] if others else []
        return [Multicast(at_once, response), *later]

    def _informed(self, data: ServiceData, rejects: bool) -> tuple[ProcessId, ...]:
        """Who gets the response: those that wait for it. That the sender has its message is known.

        This member itself counts its own at once; only a rejection is sent to it too, like any packet.
        """
        sender, me = data.id.sender, self._me
        if sender == me:
            return (me,) if rejects else ()
        if not recipients_transmit(data.quality):
            return (sender,)
        waiting = data.recipients if sender in data.recipients else (sender, *data.recipients)
        return waiting if rejects else tuple(each for each in waiting if each != me)


class _Running:
    """A message that is being transmitted, and the recipients that could not accept it."""

    def __init__(self, data: ServiceData, transmission: Transmission[bool]) -> None:
        self.data = data
        self.transmission = transmission
        self.rejected: dict[str, str] = {}

    def on_response(self, peer: ProcessId, response: Response) -> None:
        """A recipient has the message, or cannot accept it: then it is not waited for, and does not count."""
        if not response.reason:
            self.transmission.on_response(peer, response.retry, True)
        elif peer in self.transmission.missing:
            self.rejected[peer.name] = response.reason
            self.transmission.on_departure(peer)

    @property
    def receipt(self) -> SendReceipt:
        """What became of it."""
        transmission, count = self.transmission, self.data.quality.count
        candidates = len(transmission.expected) + len(self.rejected)
        answered = tuple(process.name for process in transmission.responses)
        return SendReceipt(
            message=self.data.id,
            accepted=len(answered) >= (candidates if count is None else min(count, candidates)),
            answered=answered,
            rejected=self.rejected,
            missing=tuple(process.name for process in transmission.missing),
            rounds=transmission.retry,
        )


def recipients_transmit(quality: Quality) -> bool:
    """Whether recipients send a message again if others miss it."""
    return quality.kind is not QualityKind.BEST_EFFORT
