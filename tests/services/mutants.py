"""Deliberate faults in the qualities of service: each is a rule that is missing.

A mutant is a function that injects the fault for the duration of a test. `test_service_mutants.py` shows
which case or which promise detects it.
"""

from collections.abc import Callable

import msgspec
import pytest

from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.quality import QualityKind
from priocast.links.transmission import Transmission
from priocast.services import dissemination
from priocast.services.accept_queues import (
    InsertionPointQueue,
    InsertionProposal,
    NetworkOrderQueue,
)
from priocast.services.acceptance import Acceptance
from priocast.services.causal_order import CausalOrder
from priocast.services.delta_order import DeltaOrder
from priocast.services.fifo_order import FifoOrder
from priocast.services.gaps import Gaps
from priocast.services.insertion import Point
from priocast.services.monitor import Monitor
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, ServiceOutput
from priocast.services.packets import (
    Inquiry,
    Knowledge,
    MessageDecision,
    Report,
    Response,
    ServiceData,
    ServicePacket,
    TransmissionId,
    Undecided,
)
from priocast.services.two_phase_sender import TwoPhaseSender

Mutant = Callable[[pytest.MonkeyPatch], None]


# The two-phase accept


def acks_of_any_retry_count(patch: pytest.MonkeyPatch) -> None:
    honest = Transmission.on_response

    def on_response(self: Transmission[object], process: ProcessId, _: int, response: object) -> None:
        honest(self, process, self.retry, response)

    patch.setattr(Transmission, "on_response", on_response)


def a_retry_keeps_the_position(patch: pytest.MonkeyPatch) -> None:
    honest = NetworkOrderQueue.insert

    def insert(self: NetworkOrderQueue, data: ServiceData) -> InsertionProposal:
        return InsertionProposal() if data.id in self._arrivals else honest(self, data)

    patch.setattr(NetworkOrderQueue, "insert", insert)


def the_monitor_ignores_retries(patch: pytest.MonkeyPatch) -> None:
    honest = Monitor._decision

    def decision(self: Monitor, inquiry: Inquiry, reports: list[Report]) -> MessageDecision:
        return honest(self, inquiry, [msgspec.structs.replace(each, retry=1) for each in reports])

    patch.setattr(Monitor, "_decision", decision)


def the_monitor_ignores_what_was_accepted(patch: pytest.MonkeyPatch) -> None:
    honest = Monitor._decision

    def decision(self: Monitor, inquiry: Inquiry, reports: list[Report]) -> MessageDecision:
        forgetful = [
            msgspec.structs.replace(each, knowledge=Knowledge.NOTHING)
            if each.knowledge is Knowledge.ACCEPTED
            else each
            for each in reports
        ]
        return honest(self, inquiry, forgetful)

    patch.setattr(Monitor, "_decision", decision)


def every_question_is_answered_with_accept(patch: pytest.MonkeyPatch) -> None:
    """As in Figure 5."""
    honest = TwoPhaseSender.status_of

    def status_of(self: TwoPhaseSender, message: TransmissionId) -> ServicePacket:
        answer = honest(self, message)
        return (
            msgspec.structs.replace(answer, accepted=True) if isinstance(answer, MessageDecision) else answer
        )

    patch.setattr(TwoPhaseSender, "status_of", status_of)


def an_unaccepted_head_does_not_block(patch: pytest.MonkeyPatch) -> None:
    def head(self: NetworkOrderQueue) -> ServiceDelivery | None:
        for message, each in list(self._arrivals.items()):
            if each.units:
                self._arrivals = {message: self._arrivals.pop(message), **self._arrivals}
                return each.units[0]
        return None

    patch.setattr(NetworkOrderQueue, "head", head)


def pending_is_answered_with_reject(patch: pytest.MonkeyPatch) -> None:
    honest = TwoPhaseSender.status_of

    def status_of(self: TwoPhaseSender, message: TransmissionId) -> ServicePacket:
        answer = honest(self, message)
        return MessageDecision(message, 0, accepted=False) if isinstance(answer, Undecided) else answer

    patch.setattr(TwoPhaseSender, "status_of", status_of)


def tight_has_a_single_lock(patch: pytest.MonkeyPatch) -> None:
    """The first decision unlocks the queue, whatever else is undecided."""
    insert, accept = InsertionPointQueue.insert, InsertionPointQueue.accept

    def inserting(self: InsertionPointQueue, data: ServiceData) -> InsertionProposal:
        patch.setattr(self, "locked", True, raising=False)
        return insert(self, data)

    def accepting(self: InsertionPointQueue, message: TransmissionId, point: Point) -> None:
        patch.setattr(self, "locked", False, raising=False)
        accept(self, message, point)

    def head(self: InsertionPointQueue) -> ServiceDelivery | None:
        locked = getattr(self, "locked", False)
        return self._accepted[0][2] if self._accepted and not locked else None

    patch.setattr(InsertionPointQueue, "insert", inserting)
    patch.setattr(InsertionPointQueue, "accept", accepting)
    patch.setattr(InsertionPointQueue, "head", head)


def rejections_of_unknown_messages_are_not_answered(patch: pytest.MonkeyPatch) -> None:
    """A recipient that does not hold a message does not answer that it is rejected."""
    honest = Acceptance.on_decision

    def on_decision(self: Acceptance, peer: ProcessId, decision: MessageDecision) -> list[ServiceOutput]:
        is_held = decision.id in self._undecided
        return honest(self, peer, decision) if is_held or decision.accepted else []

    patch.setattr(Acceptance, "on_decision", on_decision)


def decided_messages_are_queued_again(patch: pytest.MonkeyPatch) -> None:
    """A retransmission that comes after the decision is a new message."""
    honest = Acceptance.on_data

    def on_data(self: Acceptance, data: ServiceData, now: int) -> list[ServiceOutput]:
        self._decisions.pop(data.id, None)
        return honest(self, data, now)

    patch.setattr(Acceptance, "on_data", on_data)


def rejections_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """The sender accepts although a recipient has no room."""
    honest = TwoPhaseSender.on_response

    def on_response(
        self: TwoPhaseSender, peer: ProcessId, response: Response, now: int
    ) -> list[ServiceOutput]:
        return honest(self, peer, msgspec.structs.replace(response, reason=""), now)

    patch.setattr(TwoPhaseSender, "on_response", on_response)


def decisions_are_sent_once_and_nobody_asks(patch: pytest.MonkeyPatch) -> None:
    honest = Acceptance.on_tick

    def on_tick(self: Acceptance, now: int) -> list[ServiceOutput]:
        return [each for each in honest(self, now) if not isinstance(each, Multicast)]

    patch.setattr(Acceptance, "on_tick", on_tick)


# Dissemination and its orders


def recipients_do_not_transmit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dissemination, "recipients_transmit", lambda _: False)


def the_sender_counts_as_a_recipient(patch: pytest.MonkeyPatch) -> None:
    """Its own copy is one of those that must survive it."""

    def start(
        self: dissemination.Dissemination, data: ServiceData, timeout_ns: int, now: int, send_first: bool
    ) -> object:
        kind, quality = data.quality.kind, data.quality
        if kind is QualityKind.AT_LEAST:
            quality = msgspec.structs.replace(quality, count=max(0, (quality.count or 1) - 1))
        return honest(self, msgspec.structs.replace(data, quality=quality), timeout_ns, now, send_first)

    honest = dissemination.Dissemination._start
    patch.setattr(dissemination.Dissemination, "_start", start)


def fifo_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    honest = FifoOrder.on_arrived

    def on_arrived(self: FifoOrder, data: ServiceData) -> list[ServiceData]:
        self._last.pop(data.id.sender, None)
        return honest(self, msgspec.structs.replace(data, previous=()))

    patch.setattr(FifoOrder, "on_arrived", on_arrived)
    patch.setattr(FifoOrder, "is_overtaken", lambda *_: False)


def causes_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalOrder, "_missing", lambda *_: [])


def histories_forget_what_is_on_its_way(patch: pytest.MonkeyPatch) -> None:
    """A message leaves the history when it is delivered here."""
    honest = CausalOrder._remember

    def remember(self: CausalOrder, data: ServiceData) -> None:
        if data.id.sender == self._me:
            honest(self, data)

    patch.setattr(CausalOrder, "_remember", remember)


def gaps_are_not_asked_about(patch: pytest.MonkeyPatch) -> None:
    honest = Gaps.on_tick

    def on_tick(self: Gaps, now: int) -> list[Multicast]:
        honest(self, now)
        return []

    patch.setattr(Gaps, "on_tick", on_tick)


def delta_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeltaOrder, "_delivery_time", lambda _, data: data.clock[0] + 1)
    patch.setattr(DeltaOrder, "rejection", lambda *_: "")


def messages_are_sent_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServiceOptions, "transmissions_max", 1)
