"""Deliberate faults in the sequencer that gives out numbers: each breaks a guarantee, and is found."""

from collections import deque
from typing import Any

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
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import Broadcast, Protocol
from priocast.core.starvation import Ageing, FirstInFirstOut
from priocast.protocols.flow.grants import Grants, fill_frame
from priocast.protocols.numbering import base as numbering
from priocast.protocols.numbering.base import Grant
from priocast.protocols.numbering.requests import Asks, Promises, Want
from priocast.protocols.sequencer.uub import SequencerUub
from protocols.mutants import (
    OWN_FAULT,
    PEER_FAULT,
    STRICT,
    Mutant,
    Patch,
    Twin,
    found,
    name_of,
    schedules_find,
    script_finds,
    view_sequences_find,
)
from protocols.schedules import cases
from protocols.shared_mutants import a_place_rests_on_the_packet_that_came_last
from protocols.test_sequencer_uub import TestTheSequencer as TheSequencer
from protocols.test_sequencer_uub import check_grants
from protocols.trusting import trusting

ORDER = "sequencer-uub"
AGEING: Twin = (True, Ageing(MILLISECOND))


def numbers_are_bound_early(patch: pytest.MonkeyPatch) -> None:
    """A number is for the message that it was asked for, whatever became urgent since."""

    def ask(self: SequencerUub, giver: ProcessId) -> None:
        bound = self.__dict__.setdefault("bound", PriorityQueue(FirstInFirstOut(), 1_000, 10**6))
        asked = self._asked
        original(self, giver)
        for _ in range(self._asked - asked):
            bound.put(self.outgoing.take(1), 0)

    def fill(_: PriorityQueue, room: Any, bind: Any) -> Any:
        return fill_frame(bind.__self__.bound, room, bind)

    original = SequencerUub._ask
    patch.setattr(SequencerUub, "_ask", ask)
    patch.setattr(numbering, "fill_frame", fill)


def grants_are_used_last_first(patch: pytest.MonkeyPatch) -> None:
    def on_grant(self: SequencerUub, sender: ProcessId, grant: Grant) -> None:
        original(self, sender, grant)
        self._numbers.rotate(1)

    original = SequencerUub._on_grant
    patch.setattr(SequencerUub, "_on_grant", on_grant)


def grants_are_used_last_first_and_nobody_minds(patch: pytest.MonkeyPatch) -> None:
    grants_are_used_last_first(patch)
    patch.setattr(SequencerUub, "_check_given", lambda *_: None)


def numbers_are_given_out_without_a_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Promises, "of_level", lambda *_: 1_000)


def numbers_count_when_they_come_back(patch: pytest.MonkeyPatch) -> None:
    """What is given out and was not used yet is not in the window."""
    patch.setattr(Promises, "promised", lambda *_: None)
    patch.setattr(Promises, "placed", Grants.placed)


def promises_are_never_kept(patch: pytest.MonkeyPatch) -> None:
    """The bytes that were asked for stay in the window beside the messages."""

    def promised(self: Promises, count: int, size: int) -> None:
        original(self, count, size)
        self._promised.clear()

    original = Promises.promised
    patch.setattr(Promises, "promised", promised)


def what_has_a_later_number_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    def place_next(self: SequencerUub) -> None:
        for position in list(self._ahead):
            numbered, _ = self._ahead.pop(position)
            for batch in numbered.batches:
                self._submissions.placed(batch)
                self.place(batch, held=False)

    patch.setattr(SequencerUub, "_place_next", place_next)


def a_sender_asks_for_more_than_it_has(patch: pytest.MonkeyPatch) -> None:
    """And leaves the numbers unused for which it has nothing."""

    def on_broadcast(self: SequencerUub, event: Broadcast, now: int) -> None:
        original(self, event, now)
        self._unasked = {level: (count + 1, size) for level, (count, size) in self._unasked.items()}

    def send_numbered(self: SequencerUub) -> None:
        left = self.outgoing.count
        for numbers in self._numbers:
            numbers.count = min(numbers.count, left)
            left -= numbers.count
        self._numbers = deque(numbers for numbers in self._numbers if numbers.count)
        original_send(self)

    original, original_send = SequencerUub.on_broadcast, SequencerUub._send_numbered
    patch.setattr(SequencerUub, "on_broadcast", on_broadcast)
    patch.setattr(SequencerUub, "_send_numbered", send_numbered)


def the_loop_ends_when_nothing_is_left(patch: pytest.MonkeyPatch) -> None:
    """The techniques paper's figure 2: `while incoming is not empty`."""

    def grant(self: SequencerUub) -> None:
        if not getattr(self, "ended", False):
            original(self)
            self.ended = self._number_next > 0 and not self._asks  # type: ignore[attr-defined]

    original = SequencerUub._grant
    patch.setattr(SequencerUub, "_grant", grant)


IN_SCHEDULES: list[Mutant] = [
    (numbers_are_bound_early, {PRIORITY}),
    (trusting(grants_are_used_last_first), {FIFO_AMONG_EQUALS}),
    (grants_are_used_last_first_and_nobody_minds, {FIFO_AMONG_EQUALS}),
    (numbers_are_given_out_without_a_window, {BOUNDED_WINDOW}),
    (numbers_count_when_they_come_back, {BOUNDED_WINDOW}),
    (promises_are_never_kept, {LIVENESS}),
    (what_has_a_later_number_does_not_wait, {TOTAL_ORDER, PEER_FAULT}),
    (a_sender_asks_for_more_than_it_has, {LIVENESS}),
    (the_loop_ends_when_nothing_is_left, {LIVENESS}),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules_find(mutant, ORDER, monkeypatch)


@pytest.mark.parametrize(
    "mutate", [numbers_are_bound_early, grants_are_used_last_first_and_nobody_minds], ids=name_of
)
def test_the_script_of_late_binding_shows_the_mutant(mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    script_finds(mutate, "uub-late-binding-grant-order", monkeypatch)


def asks_are_served_as_they_come(patch: pytest.MonkeyPatch) -> None:
    def init(self: Asks, _: object) -> None:
        original(self, FirstInFirstOut())

    original = Asks.__init__
    patch.setattr(Asks, "__init__", init)


def equals_are_served_last_come_first(patch: pytest.MonkeyPatch) -> None:
    def put(self: Asks, sender: ProcessId, want: Want, now: int) -> None:
        self._unserved.clear()
        self._arrivals -= 2
        original(self, sender, want, now)

    original = Asks.put
    patch.setattr(Asks, "put", put)


def the_wait_of_an_ask_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def put(self: Asks, sender: ProcessId, want: Want, now: int) -> None:
        original(self, sender, want, 0)

    original = Asks.put
    patch.setattr(Asks, "put", put)


IN_GRANTS: list[tuple[Patch, Twin]] = [
    (asks_are_served_as_they_come, STRICT),
    (equals_are_served_last_come_first, STRICT),
    (the_wait_of_an_ask_does_not_count, AGEING),
]


@pytest.mark.parametrize(("mutate", "twin"), IN_GRANTS, ids=map(name_of, IN_GRANTS))
def test_the_property_of_grants_finds_the_mutant(
    mutate: Patch, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    found(cases(ORDER, *twin), check_grants, {OWN_FAULT})


def what_has_a_number_is_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SequencerUub, "unordered", Protocol.unordered)


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
def test_the_lives_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    view_sequences_find(mutant, ORDER, monkeypatch)


def test_who_is_waited_for_while_numbers_are_unused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is waited for too long is put out: here somebody who has nothing to consume."""

    def bottleneck(self: SequencerUub) -> ProcessId | None:
        return self._grants.bottleneck(self._asks.head()[1]) if self._asks else None

    monkeypatch.setattr(SequencerUub, "bottleneck", bottleneck)
    with pytest.raises(AssertionError):
        TheSequencer().test_nobody_has_to_consume_what_has_not_come()
