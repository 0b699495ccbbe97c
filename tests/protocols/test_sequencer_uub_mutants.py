"""Deliberate faults in the sequencer that grants numbers: each breaks a guarantee, and is found."""

from collections import deque
from typing import Any

import msgspec
import pytest

from core.builders import MILLISECOND
from priocast.core.guarantees import (
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import Broadcast
from priocast.core.starvation import Ageing, FirstInFirstOut
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.numbering.giver import NumberGiver
from priocast.protocols.numbering.packets import NumberGrant, NumberRequest
from priocast.protocols.numbering.requests import NumberRequestQueue, NumberReservations
from priocast.protocols.sequencer.uub import SequencerUub
from protocols.mutants import (
    STRICT,
    Mutant,
    Patch,
    Twin,
    check_found,
    check_schedules_find,
    check_script_finds,
    check_view_sequences_find,
    name_of,
)
from protocols.schedules import cases
from protocols.shared_mutants import a_place_rests_on_the_packet_that_came_last
from protocols.test_sequencer_uub import TestTheSequencer as TheSequencer
from protocols.test_sequencer_uub import check_grants
from protocols.trusting import trusting

ORDER = "sequencer-uub"
AGEING: Twin = (True, Ageing(MILLISECOND))


def numbers_are_bound_early(patch: pytest.MonkeyPatch) -> None:
    """A number is bound to the message that it was requested for, whatever became urgent since."""

    def request_numbers(self: SequencerUub) -> None:
        bound = vars(self).setdefault("bound", PriorityQueue(FirstInFirstOut(), 1_000, 10**6))
        requested = self._requester._requested
        original(self)
        for _ in range(self._requester._requested - requested):
            bound.put(self.outgoing.take(1), 0)

    def broadcast_numbered(self: SequencerUub) -> None:
        outgoing, self.outgoing = self.outgoing, vars(self)["bound"]
        original_broadcast(self)
        self.outgoing = outgoing

    original, original_broadcast = SequencerUub._request_numbers, SequencerUub._broadcast_numbered
    patch.setattr(SequencerUub, "_request_numbers", request_numbers)
    patch.setattr(SequencerUub, "_broadcast_numbered", broadcast_numbered)


def grants_are_used_last_first(patch: pytest.MonkeyPatch) -> None:
    def on_grant(self: SequencerUub, sender: ProcessId, grant: NumberGrant) -> None:
        original(self, sender, grant)
        self._requester._granted.rotate(1)

    original = SequencerUub._on_grant
    patch.setattr(SequencerUub, "_on_grant", on_grant)


def grants_are_used_last_first_and_not_checked(patch: pytest.MonkeyPatch) -> None:
    grants_are_used_last_first(patch)
    patch.setattr(NumberGiver, "check_used", lambda *_: None)


def numbers_are_granted_without_a_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NumberReservations, "room", lambda *_: 1_000)


def numbers_count_when_they_are_used(patch: pytest.MonkeyPatch) -> None:
    """Granted numbers that were not used yet are not in the window."""
    patch.setattr(NumberReservations, "reserve", lambda *_: None)
    patch.setattr(NumberReservations, "ordered", Grants.ordered)


def reservations_never_end(patch: pytest.MonkeyPatch) -> None:
    """The requested bytes stay in the window in addition to the messages."""

    def reserve(self: NumberReservations, count: int, size: int) -> None:
        original(self, count, size)
        self._reservations.clear()

    original = NumberReservations.reserve
    patch.setattr(NumberReservations, "reserve", reserve)


def what_has_a_later_number_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    def append_next(self: SequencerUub) -> None:
        for position in list(self._ahead._ahead):
            numbered, _ = self._ahead._ahead.pop(position)
            for batch in numbered.batches:
                self._validator.ordered(batch)
                self.append_ordered((batch,), is_bottleneck=False)

    patch.setattr(SequencerUub, "_append_next", append_next)


def a_sender_requests_more_than_it_has(patch: pytest.MonkeyPatch) -> None:
    """And leaves numbers unused for which it has no messages."""

    def on_broadcast(self: SequencerUub, event: Broadcast, now: int) -> None:
        original(self, event, now)
        unrequested = self._requester._unrequested
        unrequested.update({level: (count + 1, size) for level, (count, size) in unrequested.items()})

    def broadcast_numbered(self: SequencerUub) -> None:
        left, requester = self.outgoing.count, self._requester
        for numbers in requester._granted:
            numbers.count = min(numbers.count, left)
            left -= numbers.count
        requester._granted = deque(numbers for numbers in requester._granted if numbers.count)
        original_broadcast(self)

    original, original_broadcast = SequencerUub.on_broadcast, SequencerUub._broadcast_numbered
    patch.setattr(SequencerUub, "on_broadcast", on_broadcast)
    patch.setattr(SequencerUub, "_broadcast_numbered", broadcast_numbered)


def the_loop_ends_when_nothing_is_left(patch: pytest.MonkeyPatch) -> None:
    """The techniques paper's figure 2: `while incoming is not empty`."""

    def grant_numbers(self: SequencerUub) -> None:
        if not getattr(self, "ended", False):
            original(self)
            self.ended = self._number_next > 0 and not self._giver.requests  # type: ignore[attr-defined]

    original = SequencerUub._grant_numbers
    patch.setattr(SequencerUub, "_grant_numbers", grant_numbers)


IN_SCHEDULES: list[Mutant] = [
    (numbers_are_bound_early, {PRIORITY}),
    (trusting(grants_are_used_last_first), {FIFO_AMONG_EQUALS}),
    (grants_are_used_last_first_and_not_checked, {FIFO_AMONG_EQUALS}),
    (numbers_are_granted_without_a_window, {BOUNDED_WINDOW}),
    (numbers_count_when_they_are_used, {BOUNDED_WINDOW}),
    (reservations_never_end, {LIVENESS}),
    (trusting(what_has_a_later_number_does_not_wait), {TOTAL_ORDER}),
    (a_sender_requests_more_than_it_has, {LIVENESS}),
    (the_loop_ends_when_nothing_is_left, {LIVENESS}),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedules_find(mutant, ORDER, monkeypatch)


@pytest.mark.parametrize(
    "mutate", [numbers_are_bound_early, grants_are_used_last_first_and_not_checked], ids=name_of
)
def test_the_script_of_late_binding_shows_the_mutant(mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(mutate, "uub-late-binding-grant-order", monkeypatch)


def requests_are_served_by_arrival(patch: pytest.MonkeyPatch) -> None:
    def init(self: NumberRequestQueue, _: object) -> None:
        original(self, FirstInFirstOut())

    original = NumberRequestQueue.__init__
    patch.setattr(NumberRequestQueue, "__init__", init)


def equals_are_served_last_come_first(patch: pytest.MonkeyPatch) -> None:
    def put(self: NumberRequestQueue, sender: ProcessId, want: NumberRequest, now: int) -> None:
        self._unserved.clear()
        self._arrivals -= 2
        original(self, sender, want, now)

    original = NumberRequestQueue.put
    patch.setattr(NumberRequestQueue, "put", put)


def the_waiting_time_of_a_request_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def put(self: NumberRequestQueue, sender: ProcessId, want: NumberRequest, now: int) -> None:
        original(self, sender, want, 0)

    original = NumberRequestQueue.put
    patch.setattr(NumberRequestQueue, "put", put)


IN_GRANTS: list[tuple[Patch, Twin]] = [
    (requests_are_served_by_arrival, STRICT),
    (equals_are_served_last_come_first, STRICT),
    (the_waiting_time_of_a_request_does_not_count, AGEING),
]


@pytest.mark.parametrize(("mutate", "twin"), IN_GRANTS, ids=map(name_of, IN_GRANTS))
def test_the_property_of_grants_finds_the_mutant(
    mutate: Patch, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found(cases(ORDER, *twin), check_grants, {PRIORITY})


def what_has_a_number_is_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SequencerUub, "unordered", OrderingProtocol.unordered)


def the_numbers_of_a_view_begin_with_0(patch: pytest.MonkeyPatch) -> None:
    def init(self: SequencerUub, *given: Any) -> None:
        original(self, *given)
        self._number_next = 0

    original = SequencerUub.__init__
    patch.setattr(SequencerUub, "__init__", init)


@pytest.mark.parametrize(
    "mutant",
    [
        (what_has_a_number_is_not_sent_again, {INTEGRITY}),
        (a_place_rests_on_the_packet_that_came_last, {VIEW_SYNCHRONY}),
        (trusting(the_numbers_of_a_view_begin_with_0), {LIVENESS}),
    ],
    ids=name_of,
)
def test_view_sequences_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_view_sequences_find(mutant, ORDER, monkeypatch)


def test_a_bottleneck_while_numbers_are_unused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bottleneck is evicted after a while: here a member that has nothing to consume."""

    def inspect(self: SequencerUub, now: int) -> ProtocolInspection:
        return msgspec.structs.replace(
            OrderingProtocol.inspect(self, now), bottleneck=self._giver.bottleneck()
        )

    monkeypatch.setattr(SequencerUub, "inspect", inspect)
    with pytest.raises(AssertionError):
        TheSequencer().test_there_is_no_bottleneck_while_granted_numbers_are_unused()
