"""Deliberate faults in the moving sequencers: each breaks a guarantee or changes a script, and is found."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from priocast.core.guarantees import (
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
)
from priocast.core.identity import ProcessId
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.submissions import Submissions
from priocast.protocols.ring import moving_uub
from priocast.protocols.ring.base import RingProtocol, Wishes
from priocast.protocols.ring.candidates import Candidates
from priocast.protocols.ring.moving import MovingSequencer
from priocast.protocols.ring.moving_ub import LadenToken, MovingUb
from priocast.protocols.ring.moving_uub import MovingUub, SharedPromises
from protocols.mutants import (
    OWN_FAULT,
    PEER_FAULT,
    Patch,
    found,
    found_in_schedules,
    found_in_view_sequences,
    name_of,
    script_finds,
    single_test_finds,
)
from protocols.schedules import check
from protocols.shared_mutants import a_place_rests_on_the_packet_that_came_last
from protocols.test_moving import TestPlaces as Places
from protocols.test_moving import TestTheToken as TheToken
from protocols.test_moving import skewed_cases
from protocols.test_moving_uub import TestNumbers as Numbers
from protocols.trusting import trusting

UB, BB, UUB = "moving-ub", "moving-bb", "moving-uub"


def the_token_is_accepted_early(patch: pytest.MonkeyPatch) -> None:
    """As soon as it comes, whether or not all is here that has the places below its number."""

    def accept_token(self: RingProtocol) -> None:
        if self._token is not None:
            self._number_next, self._token = self._token.number, None

    patch.setattr(RingProtocol, "_accept_token", accept_token)
    patch.setattr(MovingSequencer, "_knows_better", lambda *_: False)


def what_others_have_ordered_is_ordered_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Candidates, "_forget", lambda _: None)


def the_token_is_kept_and_passed_on(patch: pytest.MonkeyPatch) -> None:
    def pass_token(self: RingProtocol, to: ProcessId, now: int) -> None:
        number = self._number_next
        original(self, to, now)
        self._number_next = number

    original = RingProtocol._pass_token
    patch.setattr(RingProtocol, "_pass_token", pass_token)


def the_token_goes_round_for_ever(patch: pytest.MonkeyPatch) -> None:
    def order(self: MovingSequencer, queue: Any) -> bool:
        original(self, queue)
        return True

    original = MovingSequencer._order
    patch.setattr(MovingSequencer, "_order", order)


def what_is_pending_is_dropped_with_the_token(patch: pytest.MonkeyPatch) -> None:
    """Whoever passes the token on thinks that it has nothing more to do with what it was sent."""

    def token_with(self: MovingUb, number: int, now: int) -> LadenToken:
        token = original(self, number, now)
        while self._candidates:
            self._candidates.take(1_000)
        return msgspec.structs.replace(token, pending=())

    original = MovingUb._token_with
    patch.setattr(MovingUb, "_token_with", token_with)


def asks_are_dropped_with_the_token(patch: pytest.MonkeyPatch) -> None:
    def token_with(self: MovingUub, number: int, now: int) -> moving_uub.LadenToken:
        return msgspec.structs.replace(original(self, number, now), asks=())

    original = MovingUub._token_with
    patch.setattr(MovingUub, "_token_with", token_with)


def nothing_is_handed_over(patch: pytest.MonkeyPatch) -> None:
    def token_with(self: MovingUb, number: int, now: int) -> LadenToken:
        return msgspec.structs.replace(original(self, number, now), pending=())

    original = MovingUb._token_with
    patch.setattr(MovingUb, "_token_with", token_with)


def waiting_begins_anew_when_a_message_is_handed_over(patch: pytest.MonkeyPatch) -> None:
    def on_laden_token(self: MovingUb, sender: ProcessId, token: LadenToken, now: int) -> None:
        pending = tuple(msgspec.structs.replace(each, waited=0) for each in token.pending)
        original(self, sender, msgspec.structs.replace(token, pending=pending), now)

    original = MovingUb._on_laden_token
    patch.setattr(MovingUb, "_on_laden_token", on_laden_token)


def copies_that_come_home_are_taken_for_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Submissions, "came", lambda *_: False)


def a_sender_turns_to_whoever_has_the_token(patch: pytest.MonkeyPatch) -> None:
    """While messages of its own wait elsewhere."""

    def submit(self: MovingUb) -> None:
        self._sequencer = self._holder if self._number_next is None else self.me
        under_way, self.under_way.count = self.under_way.count, 0
        try:
            original(self)
        finally:
            self.under_way.count += under_way

    original = MovingUb._submit
    patch.setattr(MovingUb, "_submit", submit)


def nobody_asks_for_the_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Wishes, "renewed", lambda *_: None)


def a_holder_that_has_nothing_lets_nobody_go_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Wishes, "first_with_room", lambda *_: None)


def the_token_goes_to_whoever_wants_it_with_or_without_room(patch: pytest.MonkeyPatch) -> None:
    """Two members that wait for the same window pass it to each other until it opens."""

    def first_with_room(self: Wishes, members: list[ProcessId], _: Grants) -> ProcessId | None:
        return next((member for member in members if self._of[member].level >= 0), None)

    patch.setattr(Wishes, "first_with_room", first_with_room)


def what_others_order_is_not_in_the_window(patch: pytest.MonkeyPatch) -> None:
    def place(self: MovingSequencer, orderer: ProcessId, batches: Any, held: bool) -> None:
        self.place_together(batches, held)

    patch.setattr(MovingSequencer, "_place", place)


def numbers_that_others_gave_are_not_in_the_window(patch: pytest.MonkeyPatch) -> None:
    def placed(self: SharedPromises, batch: Any) -> None:
        if self._came + batch.count <= self._placed:
            super(SharedPromises, self).placed(batch)

    patch.setattr(SharedPromises, "placed", placed)


def the_holder_orders_as_it_comes(patch: pytest.MonkeyPatch) -> None:
    def init(self: Candidates, *given: Any) -> None:
        original(self, *given)
        self._rank = lambda *_: 0

    original = Candidates.__init__
    patch.setattr(Candidates, "__init__", init)


def places_take_effect_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """Each packet is taken for the next one, whatever its position is."""

    def on_places(self: MovingSequencer, sender: ProcessId, places: Any) -> None:
        for messages in places.messages:
            stream = (messages.sender, messages.level)
            self._candidates._number_next[stream] = messages.first + messages.count
        self._candidates._forget()
        self._on_next(sender, places, self.packet_id)
        self._accept_token()

    patch.setattr(MovingSequencer, "_on_places", on_places)


IN_SCHEDULES: list[tuple[Patch, str, set[str]]] = [
    (the_token_is_accepted_early, UUB, {FIFO_AMONG_EQUALS, PEER_FAULT, BOUNDED_WINDOW}),
    (what_others_have_ordered_is_ordered_again, BB, {PEER_FAULT, INTEGRITY}),
    (what_others_have_ordered_is_ordered_again, UB, {PEER_FAULT, INTEGRITY}),
    (trusting(the_token_is_kept_and_passed_on), UB, {TOTAL_ORDER}),
    (trusting(the_token_is_kept_and_passed_on), BB, {TOTAL_ORDER}),
    (trusting(the_token_is_kept_and_passed_on), UUB, {OWN_FAULT}),
    (the_token_goes_round_for_ever, BB, {LIVENESS}),
    (what_is_pending_is_dropped_with_the_token, UB, {LIVENESS}),
    (asks_are_dropped_with_the_token, UUB, {LIVENESS}),
    (trusting(copies_that_come_home_are_taken_for_others), UB, {OWN_FAULT}),
    (a_sender_turns_to_whoever_has_the_token, UB, {FIFO_AMONG_EQUALS, PEER_FAULT}),
    (nobody_asks_for_the_token, UB, {LIVENESS}),
    (nobody_asks_for_the_token, UUB, {LIVENESS}),
    (a_holder_that_has_nothing_lets_nobody_go_on, UB, {LIVENESS}),
    (a_holder_that_has_nothing_lets_nobody_go_on, UUB, {LIVENESS}),
    (what_others_order_is_not_in_the_window, UB, {BOUNDED_WINDOW}),
    (what_others_order_is_not_in_the_window, BB, {BOUNDED_WINDOW}),
    (numbers_that_others_gave_are_not_in_the_window, UUB, {BOUNDED_WINDOW}),
    (the_holder_orders_as_it_comes, UB, {PRIORITY}),
    (the_holder_orders_as_it_comes, BB, {PRIORITY}),
]

ON_SKEWED_LINKS: list[tuple[Patch, str, set[str]]] = [
    (trusting(the_token_is_accepted_early), BB, {TOTAL_ORDER}),
    (the_token_is_accepted_early, UUB, {FIFO_AMONG_EQUALS, PEER_FAULT}),
    (places_take_effect_as_they_come, UB, {TOTAL_ORDER}),
    (places_take_effect_as_they_come, BB, {TOTAL_ORDER}),
]


@pytest.mark.parametrize(("mutate", "order", "guarantees"), IN_SCHEDULES, ids=map(name_of, IN_SCHEDULES))
def test_the_schedules_find_the_mutant(
    mutate: Patch, order: str, guarantees: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    found_in_schedules(order, guarantees)


@pytest.mark.parametrize(
    ("mutate", "order", "guarantees"), ON_SKEWED_LINKS, ids=map(name_of, ON_SKEWED_LINKS)
)
def test_slow_links_show_the_mutant(
    mutate: Patch, order: str, guarantees: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    found(skewed_cases(order), check, guarantees)


IN_SCRIPTS: list[tuple[Patch, str]] = [
    (the_token_is_accepted_early, "moving-no-double-sequence"),
    (what_others_have_ordered_is_ordered_again, "moving-no-double-sequence"),
    (the_token_is_accepted_early, "moving-ub-early-token"),
    (the_token_is_accepted_early, "moving-uub-numbers-in-order"),
    (nothing_is_handed_over, "moving-ub-hands-over"),
    (waiting_begins_anew_when_a_message_is_handed_over, "moving-ub-waiting-counts"),
    (asks_are_dropped_with_the_token, "moving-uub-hands-over"),
    (nobody_asks_for_the_token, "moving-ub-finds-work"),
    (the_token_goes_round_for_ever, "moving-token-rests"),
]


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_the_script_shows_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be played to its end shows it, too."""
    script_finds(mutate, script, monkeypatch, may_stop=True)


def what_is_submitted_is_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RingProtocol, "unordered", lambda self: self.outgoing.drain())


@pytest.mark.parametrize("order", [UB, BB])
def test_the_lives_find_what_is_not_sent_again(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    what_is_submitted_is_not_sent_again(monkeypatch)
    found_in_view_sequences(order, {INTEGRITY})


IN_TESTS: list[tuple[Patch, Callable[[], None]]] = [
    (a_place_rests_on_the_packet_that_came_last, Places().test_a_place_rests_on_the_order_and_on_the_data),
    (
        a_place_rests_on_the_packet_that_came_last,
        Places().test_a_place_rests_on_all_orders_before_it_whenever_they_come,
    ),
    (
        a_place_rests_on_the_packet_that_came_last,
        Places().test_a_number_s_place_rests_on_all_messages_before_it_whenever_they_come,
    ),
    (
        what_is_submitted_is_not_sent_again,
        Numbers().test_what_has_a_number_behind_one_that_nobody_used_is_sent_again,
    ),
    (
        the_token_goes_to_whoever_wants_it_with_or_without_room,
        TheToken().test_a_resting_holder_lets_go_only_where_there_is_room,
    ),
]


@pytest.mark.parametrize(("mutate", "tested"), IN_TESTS, ids=map(name_of, IN_TESTS))
def test_a_single_test_finds_the_mutant(
    mutate: Patch, tested: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    single_test_finds(mutate, tested, monkeypatch)
