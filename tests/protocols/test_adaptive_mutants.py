"""Deliberate faults in the adaptive order: what each rule is for, and the check that finds it missing."""

from typing import Any

import msgspec
import pytest

from priocast.core.guarantees import (
    FIFO_AMONG_EQUALS,
    LIVENESS,
    PRIORITY,
    TIMESTAMP_ORDER,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import Received
from priocast.core.stamp import DistributionId, Stamp
from priocast.core.view import View
from priocast.protocols.adaptive import adaptive
from priocast.protocols.adaptive.adaptive import Adaptive
from priocast.protocols.adaptive.packets import FilledSlot, SkippedTurns
from priocast.protocols.adaptive.sender_slots import SenderSlots
from priocast.protocols.adaptive.slots import DEFAULT_ID, Distribution
from protocols import test_adaptive
from protocols.mutants import (
    Mutant,
    check_found_in_view_sequences,
    check_schedules_find,
    check_single_test_finds,
    check_view_sequences_find,
    name_of,
)
from protocols.shared_mutants import a_sender_sends_what_came_first


def a_silent_member_stays_silent(patch: pytest.MonkeyPatch) -> None:
    """The paper without dummies."""
    patch.setattr(Adaptive, "_skip_turns", lambda _: None)


def skips_cause_skips(patch: pytest.MonkeyPatch) -> None:
    def on_received(self: Adaptive, event: Received, now: int) -> None:
        original(self, event, now)
        if isinstance(event.packet, SkippedTurns):
            self._awaited = max(self._awaited, self._senders[self.ranks[event.sender]].clock)

    original = Adaptive.on_received
    patch.setattr(Adaptive, "on_received", on_received)


def a_skipped_slot_comes_back(patch: pytest.MonkeyPatch) -> None:
    """Figures 5 and 6 taken literally: skips do not advance the order (`adaptive-skip-advances-slot`)."""

    def advance(self: SenderSlots, distribution: Distribution, turn_next: int, number: int) -> None:
        filled = sum(1 for _ in self.filled)
        clock = self.clock
        original(self, distribution, turn_next, number)
        if not filled and distribution is self.distribution and clock[:2] == self.clock[:2]:
            self.clock = min(self.clock, (*clock[:2], clock[2] + 1))

    original = SenderSlots.advance
    patch.setattr(SenderSlots, "advance", advance)


def whoever_has_changed_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Figure 6 taken literally: its pending messages prevent a skip (`adaptive-skip-with-higher-pending`)."""

    def advance(self: SenderSlots, distribution: Distribution, turn_next: int, number: int) -> None:
        clock = self.clock
        original(self, distribution, turn_next, number)
        if clock[:2] != self.clock[:2]:
            self.clock = clock

    original = SenderSlots.advance
    patch.setattr(SenderSlots, "advance", advance)


def a_change_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """Figure 4 without condition 3: `adaptive-change-waits-for-all`."""

    def append_next(self: Adaptive) -> None:
        newest = max(slots.clock[:2] for slots in self._senders)
        self._complete = min(slots.clock for slots in self._senders if slots.clock[:2] == newest)
        original(self)

    original = Adaptive._append_next
    patch.setattr(Adaptive, "_append_next", append_next)
    patch.setattr(SenderSlots, "packet_after", lambda *_: 1)


def one_clock_is_enough(patch: pytest.MonkeyPatch) -> None:
    def append_next(self: Adaptive) -> None:
        self._complete = max(slots.clock for slots in self._senders)
        original(self)

    original = Adaptive._append_next
    patch.setattr(Adaptive, "_append_next", append_next)
    patch.setattr(SenderSlots, "packet_after", lambda *_: 1)


def a_change_is_not_announced(patch: pytest.MonkeyPatch) -> None:
    """A member that has nothing to send does not say that it has changed: the change never ends."""

    def skip_turns(self: Adaptive) -> None:
        if self._announced == self._sending.id:
            original(self)

    original = Adaptive._skip_turns
    patch.setattr(Adaptive, "_skip_turns", skip_turns)


def two_proposals_have_one_id(patch: pytest.MonkeyPatch) -> None:
    """Ids without their proposer: of two proposals at once each member uses the one that came first."""

    def distribution_of(self: Adaptive, _: Any, last: Distribution, packet: Any) -> Distribution:
        id_ = DistributionId(packet.distribution.number, 0)
        if id_ == last.id:
            return last
        return self._distributions.get(id_) or self._added(id_, packet.weights or (1,) * len(self._senders))

    def added(self: Adaptive, id_: DistributionId, weights: tuple[int, ...]) -> Distribution:
        return original(self, DistributionId(id_.number, 0), weights)

    original = Adaptive._added
    patch.setattr(Adaptive, "_added", added)
    patch.setattr(Adaptive, "_distribution_of", distribution_of)


def a_slot_has_one_number(patch: pytest.MonkeyPatch) -> None:
    def queue_ordered(self: Adaptive, batch: Batch) -> None:
        self._beyond_slots = 0
        original(self, batch)

    original = Adaptive.queue_ordered
    patch.setattr(Adaptive, "queue_ordered", queue_ordered)


def numbers_go_on_in_the_next_distribution_at_some(patch: pytest.MonkeyPatch) -> None:
    """One member counts on where the others begin anew."""

    def queue_ordered(self: Adaptive, batch: Batch) -> None:
        if self.me.name == "b" and self._stamp.distribution.number:
            self._stamp = Stamp(self._view_id, self._stamp.distribution, self._stamp.number + 1)
        original(self, batch)

    original = Adaptive.queue_ordered
    patch.setattr(Adaptive, "queue_ordered", queue_ordered)


def stamps_do_not_name_the_distribution(patch: pytest.MonkeyPatch) -> None:
    def queue_ordered(self: Adaptive, batch: Batch) -> None:
        original(self, batch)
        ordered = self._ordered_batches[-1]
        ordered.stamp = Stamp(self._view_id, DistributionId(0, 0), self._stamp.number)

    original = Adaptive.queue_ordered
    patch.setattr(Adaptive, "queue_ordered", queue_ordered)


def stamps_do_not_name_the_view(patch: pytest.MonkeyPatch) -> None:
    """Numbers begin anew in every view."""

    def queue_ordered(self: Adaptive, batch: Batch) -> None:
        original(self, batch)
        ordered, view = self._ordered_batches[-1], type(self._view_id)(1, self._view_id.coordinator)
        ordered.stamp = Stamp(view, self._stamp.distribution, self._stamp.number)

    original = Adaptive.queue_ordered
    patch.setattr(Adaptive, "queue_ordered", queue_ordered)


def a_slot_is_reversed(patch: pytest.MonkeyPatch) -> None:
    def receive(self: Adaptive, sender: ProcessId, packet: Any, *given: Any) -> None:
        if isinstance(packet, FilledSlot):
            packet = msgspec.structs.replace(packet, batches=packet.batches[::-1])
        original(self, sender, packet, *given)

    original = Adaptive._receive
    patch.setattr(Adaptive, "_receive", receive)


def slots_stay_in_use(patch: pytest.MonkeyPatch) -> None:
    """A member does not notice that its slots are ordered, and fills no more after some."""
    patch.setattr(adaptive, "_UNORDERED_MAX", 1)

    def append_next(self: Adaptive) -> None:
        before = self._unordered_own
        original(self)
        self._unordered_own = before

    original = Adaptive._append_next
    patch.setattr(Adaptive, "_append_next", append_next)


def a_message_depends_on_what_arrived_last(patch: pytest.MonkeyPatch) -> None:
    """Members know the position from different packets, by the order of their arrival."""
    patch.setattr(SenderSlots, "packet_after", lambda self, _: self._packets[-1][1])


def only_the_proposer_sends_the_weights(patch: pytest.MonkeyPatch) -> None:
    """`adaptive-weights-after-loss`."""

    def first_weights(self: Adaptive) -> tuple[int, ...]:
        weights = original(self)
        return weights if self._sending.id.rank == self._rank else ()

    original = Adaptive._first_weights
    patch.setattr(Adaptive, "_first_weights", first_weights)


def weights_outlive_a_view(patch: pytest.MonkeyPatch) -> None:
    """`adaptive-new-view-default`: members may have used different distributions last."""
    last: dict[str, tuple[int, ...]] = {}

    def init(self: Adaptive, me: ProcessId, view: View, *given: Any) -> None:
        original(self, me, view, *given)
        weights = last.pop(me.name, None)
        if view.number > 1 and weights is not None and len(weights) == len(view.members):
            self._sending = begun = Distribution(DEFAULT_ID, weights)
            self._distributions = {DEFAULT_ID: begun}
            self._senders = [SenderSlots(begun, rank) for rank in range(len(weights))]
            self._advance(0)

    def use(self: Adaptive, distribution: Distribution) -> None:
        last[self.me.name] = distribution.weights
        original_use(self, distribution)

    original, original_use = Adaptive.__init__, Adaptive._use
    patch.setattr(Adaptive, "__init__", init)
    patch.setattr(Adaptive, "_use", use)


def open_slots_are_skipped_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """Figure 6 with a pending view: correct for stamps, not for positions (decision 35)."""

    def close(self: Adaptive) -> None:
        last = max(self._senders, key=lambda slots: slots.clock).clock
        self._complete = (*last[:2], last[2] + 1)
        for slots in self._senders:
            slots._packets.append((self._complete, slots._packets[-1][1]))
        self._append_next()

    patch.setattr(Adaptive, "close", close)


IN_SCHEDULES: list[Mutant] = [
    (a_silent_member_stays_silent, (LIVENESS,)),
    (skips_cause_skips, (LIVENESS,)),
    (a_skipped_slot_comes_back, (LIVENESS,)),
    (whoever_has_changed_is_waited_for, (LIVENESS,)),
    (a_change_waits_for_nobody, (TOTAL_ORDER,)),
    (one_clock_is_enough, (TOTAL_ORDER,)),
    (a_change_is_not_announced, (LIVENESS,)),
    (two_proposals_have_one_id, (TOTAL_ORDER,)),
    (a_slot_has_one_number, (TIMESTAMP_ORDER,)),
    (numbers_go_on_in_the_next_distribution_at_some, (TIMESTAMP_ORDER,)),
    (stamps_do_not_name_the_distribution, (TIMESTAMP_ORDER,)),
    (a_slot_is_reversed, (FIFO_AMONG_EQUALS,)),
    (slots_stay_in_use, (LIVENESS,)),
    (a_sender_sends_what_came_first, (PRIORITY,)),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedules_find(mutant, "adaptive", monkeypatch)


def test_view_sequences_find_stamps_without_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    check_view_sequences_find((stamps_do_not_name_the_view, (TIMESTAMP_ORDER,)), "adaptive", monkeypatch)


def test_view_sequences_find_positions_that_depend_on_the_order_of_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_message_depends_on_what_arrived_last(monkeypatch)
    check_found_in_view_sequences("adaptive", (VIEW_SYNCHRONY,))


def test_adaptive_weights_after_loss_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_adaptive.TestChanges().test_adaptive_weights_after_loss
    check_single_test_finds(only_the_proposer_sends_the_weights, case, monkeypatch)


def test_adaptive_new_view_default_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_adaptive.TestChanges().test_adaptive_new_view_default
    check_single_test_finds(weights_outlive_a_view, case, monkeypatch, match="b has another weight")


def test_an_open_slot_must_not_be_skipped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_adaptive.TestPartitions().test_what_follows_an_open_slot_is_sent_again
    check_single_test_finds(open_slots_are_skipped_at_the_end, case, monkeypatch)
