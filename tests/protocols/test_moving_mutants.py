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
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.ring.moving import MovingSequencer
from priocast.protocols.ring.moving_bb import MovingBb
from priocast.protocols.ring.moving_packets import TokenWithMessages, TokenWithNumberRequests
from priocast.protocols.ring.moving_ub import MovingUb
from priocast.protocols.ring.moving_uub import MovingUub, SharedNumberReservations
from priocast.protocols.ring.pending_queue import PendingQueue
from priocast.protocols.ring.ring import Ring
from priocast.protocols.ring.token_requests import TokenRequests
from protocols.mutants import (
    Patch,
    check_found,
    check_found_in_schedules,
    check_found_in_view_sequences,
    check_script_finds,
    check_single_test_finds,
    name_of,
)
from protocols.schedules import check
from protocols.shared_mutants import a_place_rests_on_the_packet_that_came_last
from protocols.test_moving import TestPositions as Positions
from protocols.test_moving import TestTheToken as TheToken
from protocols.test_moving import skewed_cases
from protocols.test_moving_uub import TestNumbers as Numbers
from protocols.trusting import trusting

UB, BB, UUB = "moving-ub", "moving-bb", "moving-uub"


def the_token_is_accepted_early(patch: pytest.MonkeyPatch) -> None:
    """On arrival, whether or not everything below its position is here."""

    def accept(self: Ring, position_next: int) -> None:
        if self._token is not None:
            self.position, self._token = self._token.position, None

    patch.setattr(Ring, "accept", accept)
    patch.setattr(Ring, "check_may_order", lambda *_: None)


def what_others_have_ordered_is_ordered_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingQueue, "_drop_ordered", lambda _: None)


def the_token_is_kept_and_passed_on(patch: pytest.MonkeyPatch) -> None:
    def release(self: Ring) -> int:
        assert self.position is not None
        return self.position

    patch.setattr(Ring, "release", release)


def the_token_circulates_for_ever(patch: pytest.MonkeyPatch) -> None:
    def order(self: MovingBb, first: int) -> bool:
        original(self, first)
        return True

    original = MovingBb._order
    patch.setattr(MovingBb, "_order", order)


def what_is_pending_is_dropped_with_the_token(patch: pytest.MonkeyPatch) -> None:
    """A member that passes the token forgets what was submitted to it."""

    def release_token(self: MovingUb, now: int) -> TokenWithMessages:
        token = original(self, now)
        while self._pending:
            self._pending.take(1_000)
        return msgspec.structs.replace(token, pending=())

    original = MovingUb._release_token
    patch.setattr(MovingUb, "_release_token", release_token)


def requests_are_dropped_with_the_token(patch: pytest.MonkeyPatch) -> None:
    def release_token(self: MovingUub, now: int) -> TokenWithNumberRequests:
        return msgspec.structs.replace(original(self, now), pending=())

    original = MovingUub._release_token
    patch.setattr(MovingUub, "_release_token", release_token)


def the_token_carries_nothing(patch: pytest.MonkeyPatch) -> None:
    def release_token(self: MovingUb, now: int) -> TokenWithMessages:
        return msgspec.structs.replace(original(self, now), pending=())

    original = MovingUb._release_token
    patch.setattr(MovingUb, "_release_token", release_token)


def the_waiting_time_restarts_when_the_token_carries_a_message(patch: pytest.MonkeyPatch) -> None:
    def on_token(self: MovingUb, sender: ProcessId, token: TokenWithMessages, now: int) -> None:
        pending = tuple(msgspec.structs.replace(each, waited=0) for each in token.pending)
        original(self, sender, msgspec.structs.replace(token, pending=pending), now)

    original = MovingUb._on_token
    patch.setattr(MovingUb, "_on_token", on_token)


def copies_of_submitted_messages_are_ordered_too(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SubmissionValidator, "received", lambda *_: False)


def a_sender_always_submits_to_the_holder(patch: pytest.MonkeyPatch) -> None:
    """While messages of its own wait elsewhere."""

    def submit(self: MovingUb) -> None:
        self._sequencer = self._holder if self._ring.position is None else self.me
        in_flight, self.in_flight.count = self.in_flight.count, 0
        try:
            original(self)
        finally:
            self.in_flight.count += in_flight

    original = MovingUb._submit
    patch.setattr(MovingUb, "_submit", submit)


def the_token_is_never_requested(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenRequests, "next_own", lambda *_: None)


def an_idle_holder_never_passes_the_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenRequests, "first_with_room", lambda *_: None)


def the_token_is_passed_with_or_without_room(patch: pytest.MonkeyPatch) -> None:
    """Two members that wait for the same window pass it to each other until it opens."""

    def first_with_room(self: TokenRequests, members: list[ProcessId], _: Grants) -> ProcessId | None:
        return next((member for member in members if self._of[member].level >= 0), None)

    patch.setattr(TokenRequests, "first_with_room", first_with_room)


def what_others_order_is_not_in_the_window(patch: pytest.MonkeyPatch) -> None:
    """The holder counts while it fills a frame; messages that others have ordered count on arrival."""

    def init(self: MovingSequencer[Any], *given: Any) -> None:
        original(self, *given)
        own = self._grants.ordered
        patch.setattr(
            self._grants, "ordered", lambda batch: own(batch) if self._ring.position is not None else None
        )
        patch.setattr(self._grants, "ordered_together", lambda *_: None)

    original = MovingSequencer.__init__
    patch.setattr(MovingSequencer, "__init__", init)


def numbers_that_others_granted_are_not_in_the_window(patch: pytest.MonkeyPatch) -> None:
    def ordered(self: SharedNumberReservations, batch: Any) -> None:
        if self._used_count + batch.count <= self.ordered_count:
            super(SharedNumberReservations, self).ordered(batch)

    patch.setattr(SharedNumberReservations, "ordered", ordered)


def the_holder_orders_by_arrival(patch: pytest.MonkeyPatch) -> None:
    def init(self: PendingQueue, *given: Any) -> None:
        original(self, *given)
        self._sort_key = lambda *_: 0

    original = PendingQueue.__init__
    patch.setattr(PendingQueue, "__init__", init)


def positions_take_effect_on_arrival(patch: pytest.MonkeyPatch) -> None:
    """Each packet is treated as the next one, whatever its position is."""

    def in_order(self: MovingSequencer[Any], sender: ProcessId, order: Any, packet_id: Any) -> Any:
        for messages in order.messages:
            stream = (messages.sender, messages.level)
            self._pending._number_next[stream] = messages.first + messages.count
        self._pending._drop_ordered()
        return [(sender, order, packet_id)]

    patch.setattr(MovingSequencer, "_in_order", in_order)


IN_SCHEDULES: list[tuple[Patch, str, set[str]]] = [
    (the_token_is_accepted_early, UUB, {BOUNDED_WINDOW}),
    (trusting(what_others_have_ordered_is_ordered_again), BB, {INTEGRITY}),
    (trusting(what_others_have_ordered_is_ordered_again), UB, {INTEGRITY}),
    (trusting(the_token_is_kept_and_passed_on), UB, {TOTAL_ORDER}),
    (trusting(the_token_is_kept_and_passed_on), BB, {TOTAL_ORDER}),
    (trusting(the_token_is_kept_and_passed_on), UUB, {TOTAL_ORDER}),
    (the_token_circulates_for_ever, BB, {LIVENESS}),
    (what_is_pending_is_dropped_with_the_token, UB, {LIVENESS}),
    (requests_are_dropped_with_the_token, UUB, {LIVENESS}),
    (trusting(copies_of_submitted_messages_are_ordered_too), UB, {INTEGRITY}),
    (trusting(a_sender_always_submits_to_the_holder), UB, {FIFO_AMONG_EQUALS}),
    (the_token_is_never_requested, UB, {LIVENESS}),
    (the_token_is_never_requested, UUB, {LIVENESS}),
    (an_idle_holder_never_passes_the_token, UB, {LIVENESS}),
    (an_idle_holder_never_passes_the_token, UUB, {LIVENESS}),
    (what_others_order_is_not_in_the_window, UB, {BOUNDED_WINDOW}),
    (what_others_order_is_not_in_the_window, BB, {BOUNDED_WINDOW}),
    (numbers_that_others_granted_are_not_in_the_window, UUB, {BOUNDED_WINDOW}),
    (the_holder_orders_by_arrival, UB, {PRIORITY}),
    (the_holder_orders_by_arrival, BB, {PRIORITY}),
]

ON_SKEWED_LINKS: list[tuple[Patch, str, set[str]]] = [
    (trusting(the_token_is_accepted_early), BB, {INTEGRITY}),  # two members order the same message
    (trusting(the_token_is_accepted_early), UUB, {FIFO_AMONG_EQUALS}),
    (positions_take_effect_on_arrival, UB, {TOTAL_ORDER}),
    (positions_take_effect_on_arrival, BB, {TOTAL_ORDER}),
]


@pytest.mark.parametrize(("mutate", "order", "guarantees"), IN_SCHEDULES, ids=map(name_of, IN_SCHEDULES))
def test_the_schedules_find_the_mutant(
    mutate: Patch, order: str, guarantees: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found_in_schedules(order, guarantees)


@pytest.mark.parametrize(
    ("mutate", "order", "guarantees"), ON_SKEWED_LINKS, ids=map(name_of, ON_SKEWED_LINKS)
)
def test_slow_links_show_the_mutant(
    mutate: Patch, order: str, guarantees: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found(skewed_cases(order), check, guarantees)


IN_SCRIPTS: list[tuple[Patch, str]] = [
    (the_token_is_accepted_early, "moving-no-double-sequence"),
    (what_others_have_ordered_is_ordered_again, "moving-no-double-sequence"),
    (the_token_is_accepted_early, "moving-ub-early-token"),
    (the_token_is_accepted_early, "moving-uub-numbers-in-order"),
    (the_token_carries_nothing, "moving-ub-token-carries-messages"),
    (the_waiting_time_restarts_when_the_token_carries_a_message, "moving-ub-waiting-counts"),
    (requests_are_dropped_with_the_token, "moving-uub-token-carries-requests"),
    (the_token_is_never_requested, "moving-ub-finds-work"),
    (the_token_circulates_for_ever, "moving-token-rests"),
]


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_the_script_shows_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that cannot be played to its end shows it, too."""
    check_script_finds(mutate, script, monkeypatch, may_stop=True)


def submitted_messages_are_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FlowControlledProtocol, "unordered", lambda self: self.outgoing.drain())


@pytest.mark.parametrize("order", [UB, BB])
def test_view_sequences_find_messages_that_are_not_sent_again(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted_messages_are_not_sent_again(monkeypatch)
    check_found_in_view_sequences(order, {INTEGRITY})


IN_TESTS: list[tuple[Patch, Callable[[], None]]] = [
    (
        a_place_rests_on_the_packet_that_came_last,
        Positions().test_a_position_depends_on_the_order_and_on_the_data,
    ),
    (
        a_place_rests_on_the_packet_that_came_last,
        Positions().test_a_position_depends_on_all_orders_before_it,
    ),
    (
        a_place_rests_on_the_packet_that_came_last,
        Positions().test_a_number_depends_on_all_messages_before_it,
    ),
    (
        submitted_messages_are_not_sent_again,
        Numbers().test_messages_behind_an_unused_number_are_sent_again,
    ),
    (
        the_token_is_passed_with_or_without_room,
        TheToken().test_a_resting_holder_passes_it_only_where_there_is_room,
    ),
]


@pytest.mark.parametrize(("mutate", "tested"), IN_TESTS, ids=map(name_of, IN_TESTS))
def test_a_single_test_finds_the_mutant(
    mutate: Patch, tested: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_single_test_finds(mutate, tested, monkeypatch)
