"""Deliberate faults in the sequencer that broadcasts references: each breaks a guarantee, and is found."""

from typing import Any

import pytest

from priocast.core.guarantees import (
    AGREEMENT,
    BOUNDED_WINDOW,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import PacketId
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Data, Order
from priocast.protocols.sequencer.bb import SequencerBb
from protocols.mutants import (
    Mutant,
    check_found_by_waiting,
    check_schedules_find,
    check_view_sequences_find,
    name_of,
)
from protocols.shared_mutants import (
    a_place_rests_on_the_packet_that_came_last,
    the_sequencer_waits_for_the_fastest,
)
from protocols.test_sequencer_bb import TestPositions as Positions
from protocols.test_sequencer_bb import TestTheEndOfAView as TheEnd
from protocols.trusting import trusting

ORDER = "sequencer-bb"


def messages_are_ordered_on_arrival(patch: pytest.MonkeyPatch) -> None:
    """Messages do not wait for the sequencer's order."""

    def on_data(
        self: SequencerBb, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int
    ) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self.append_ordered((batch,), is_bottleneck=False)

    patch.setattr(SequencerBb, "_on_data", on_data)


def positions_do_not_wait_for_missing_messages(patch: pytest.MonkeyPatch) -> None:
    """Later messages that are here are appended before earlier ones that are not."""

    def append_next(self: SequencerBb) -> None:
        references, store = self._messages._references, self._messages._store
        for ordered in list(references):
            if store.has(ordered.reference):
                references.remove(ordered)
                self.append_ordered(store.take(ordered.reference)[0], ordered.is_bottleneck)

    patch.setattr(SequencerBb, "_append_next", append_next)


def messages_that_arrive_after_their_positions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def on_data(
        self: SequencerBb, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int
    ) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.received(batch, packet_id)
            if self.me == self._sequencer:
                self._incoming.put(batch, now)

    patch.setattr(SequencerBb, "_on_data", on_data)


def the_sequencer_orders_by_arrival(patch: pytest.MonkeyPatch) -> None:
    def init(self: SequencerBb, *given: Any) -> None:
        original(self, *given)
        self._incoming._sort_key = lambda *_: 0

    original = SequencerBb.__init__
    patch.setattr(SequencerBb, "__init__", init)


def the_sequencer_orders_at_once(patch: pytest.MonkeyPatch) -> None:
    """There is no window: nothing waits where priorities act."""
    patch.setattr(Grants, "room", lambda *_: 1_000)


def the_loop_ends_when_nothing_is_left(patch: pytest.MonkeyPatch) -> None:
    """The techniques paper's figure 2: `while incoming is not empty`."""

    def order(self: SequencerBb) -> None:
        if not getattr(self, "ended", False):
            original(self)
            self.ended = self._number_next > 0 and not self._incoming  # type: ignore[attr-defined]

    original = SequencerBb._order
    patch.setattr(SequencerBb, "_order", order)


def every_member_orders(patch: pytest.MonkeyPatch) -> None:
    def init(self: SequencerBb, *given: Any) -> None:
        original(self, *given)
        self._sequencer = self.me

    original = SequencerBb.__init__
    patch.setattr(SequencerBb, "__init__", init)


IN_SCHEDULES: list[Mutant] = [
    (messages_are_ordered_on_arrival, {TOTAL_ORDER}),
    (positions_do_not_wait_for_missing_messages, {TOTAL_ORDER}),
    (messages_that_arrive_after_their_positions_are_ignored, {LIVENESS, AGREEMENT}),
    (the_sequencer_orders_by_arrival, {PRIORITY}),
    (the_sequencer_orders_at_once, {BOUNDED_WINDOW}),
    (the_loop_ends_when_nothing_is_left, {LIVENESS}),
    (trusting(every_member_orders), {INTEGRITY}),  # every message is ordered once by each member
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedules_find(mutant, ORDER, monkeypatch)


def test_the_property_of_waiting_finds_the_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    the_sequencer_waits_for_the_fastest(monkeypatch)
    check_found_by_waiting(ORDER, {LIVENESS})


def messages_are_not_kept_for_others(patch: pytest.MonkeyPatch) -> None:
    """Only the order is exchanged when a view ends; a member that lacks a message cannot continue."""
    patch.setattr(Data, "TO_ALL", False)
    patch.setattr(SequencerBb, "send_all", _send_as_it_is_marked)


def _send_as_it_is_marked(self: SequencerBb, packet: Data | Order) -> None:
    send = FlowControlledProtocol.send_all if packet.TO_ALL else FlowControlledProtocol.send_each
    send(self, packet)


IN_LIVES: list[Mutant] = [
    (messages_are_not_kept_for_others, {VIEW_SYNCHRONY}),
    (a_place_rests_on_the_packet_that_came_last, {VIEW_SYNCHRONY}),
]


@pytest.mark.parametrize("mutant", IN_LIVES, ids=name_of)
def test_view_sequences_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_view_sequences_find(mutant, ORDER, monkeypatch)


@pytest.mark.parametrize("rank_left_out", [0, 2], ids=["order", "data"])
def test_dependencies_without_a_packet_are_found(rank_left_out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All members omit it alike, so lives do not show it: only messages that are safe too early do."""

    def depends_on(self: SequencerBb, packet_id: tuple[int, int]) -> None:
        if packet_id[0] != rank_left_out:
            original(self, packet_id)

    original = SequencerBb.depends_on
    monkeypatch.setattr(SequencerBb, "depends_on", depends_on)
    with pytest.raises(AssertionError):
        Positions().test_a_position_depends_on_the_order_and_on_all_data_up_to_it(order_first=False)


def test_a_sender_that_forgets_messages_behind_a_gap_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A position counts as soon as it is known, although the messages before it may be lost.

    Lives seldom show it: the sequencer and the sender of what is missing must both be gone.
    """

    def on_order(self: SequencerBb, sender: ProcessId, order: Order, packet_id: PacketId) -> None:
        for reference in order.references:
            if reference.sender == self.me:
                self.in_flight.ordered(Batch(self.me, reference.level, reference.first, reference.count, b""))
        original(self, sender, order, packet_id)

    def append_ordered(self: FlowControlledProtocol, batches: list[Batch], is_bottleneck: bool) -> None:
        for batch in batches:
            self.queue_ordered(batch)

    original = SequencerBb._on_order
    monkeypatch.setattr(SequencerBb, "_on_order", on_order)
    monkeypatch.setattr(FlowControlledProtocol, "append_ordered", append_ordered)
    with pytest.raises(AssertionError):
        TheEnd().test_a_position_whose_message_is_lost_ends_the_order()
