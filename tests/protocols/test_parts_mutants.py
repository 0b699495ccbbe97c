"""Deliberate faults in the parts: one plausible mistake each, and the guarantee that finds it."""

import pytest

from priocast.core.guarantees import AGREEMENT, FIFO_AMONG_EQUALS, INTEGRITY, LIVENESS, PRIORITY, TOTAL_ORDER
from priocast.core.message import CONTROL, Batch, OrderedBatch
from priocast.core.protocol import Consume, OrderingOptions, Received
from priocast.protocols.parts import CountParts, Parts, _OpenPart
from protocols.guarantees import check_all
from protocols.harness import Group, Violation
from protocols.mutants import Patch, check_found_in_schedules, check_found_in_view_sequences
from protocols.schedules import MILLISECOND

Mutant = tuple[Patch, str, set[str]]
TIME, COUNT = "time-parts/sequencer-ub", "count-parts/sequencer-ub"


def every_member_ends_parts_by_its_own_timer(patch: pytest.MonkeyPatch) -> None:
    """The protocol of the techniques paper's section 8, taken literally: `receiver-cut-in-band`."""

    def take(self: Parts, now: int) -> None:
        original(self, now)
        self._set_timer(now)

    def on_time(self: Parts, _: int) -> None:
        self._timer_at = None
        if self._part.batches:
            _end(self)

    original = Parts._take
    patch.setattr(Parts, "_take", take)
    patch.setattr(Parts, "_on_part_timer", on_time)


def a_part_ends_with_a_packet(patch: pytest.MonkeyPatch) -> None:
    """Parts by arrival: packets may arrive in other portions, but must not change where parts end."""

    def on_received(self: Parts, event: Received, now: int) -> None:
        original(self, event, now)
        if self._part.batches and now % 2:
            _end(self)

    original = Parts.on_received
    patch.setattr(Parts, "on_received", on_received)


def a_part_is_not_sorted(patch: pytest.MonkeyPatch) -> None:
    def end(self: _OpenPart) -> list[Batch]:
        batches = self.batches
        original(self)
        return batches

    original = _OpenPart.end
    patch.setattr(_OpenPart, "end", end)


def one_more_is_in_a_full_part(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CountParts, "_count_max", lambda self: self.options.part_count + 1)


def equals_are_reversed(patch: pytest.MonkeyPatch) -> None:
    def end(self: _OpenPart) -> list[Batch]:
        self.batches.reverse()
        return original(self)

    original = _OpenPart.end
    patch.setattr(_OpenPart, "end", end)


def a_control_message_has_a_position(patch: pytest.MonkeyPatch) -> None:
    def take_next(self: Parts, ordered_batch: OrderedBatch, now: int) -> None:
        self.position_next += ordered_batch.batch.level == CONTROL
        original(self, ordered_batch, now)

    original = Parts._take_next
    patch.setattr(Parts, "_take_next", take_next)


def nobody_ends_an_incomplete_part(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Parts, "_set_timer", lambda *_: None)


def what_is_in_a_part_is_not_consumed_below(patch: pytest.MonkeyPatch) -> None:
    """With a full window the control message waits for the consumption of what waits for it."""

    def take(self: Parts, now: int) -> None:
        below = [
            ordered_batch for ordered_batch in self.inner.unconsumed() if ordered_batch.batch.level == CONTROL
        ]
        if below or self._part.after(self.inner.unconsumed()) == []:
            original(self, now)
        elif self.me == self.view.coordinator:
            self._set_timer(now)

    original = Parts._take
    patch.setattr(Parts, "_take", take)


def the_rest_of_a_batch_is_consumed_with_its_start(patch: pytest.MonkeyPatch) -> None:
    def take_next(self: Parts, ordered_batch: OrderedBatch, now: int) -> None:
        before, left = self.inner.inspect(0).unconsumed, ordered_batch.batch.count - ordered_batch.taken
        original(self, ordered_batch, now)
        taken = before - self.inner.inspect(0).unconsumed
        if taken < left:
            self.inner.step(Consume(left - taken), now)

    original = Parts._take_next
    patch.setattr(Parts, "_take_next", take_next)


def an_open_part_is_lost(patch: pytest.MonkeyPatch) -> None:
    def unordered(self: Parts) -> list[Batch]:
        self._take_all()
        self._part.batches.clear()
        return original(self)

    original = Parts.unordered
    patch.setattr(Parts, "unordered", unordered)


def what_was_not_taken_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Parts, "_take_all", lambda _: None)


def control_messages_are_sent_again(patch: pytest.MonkeyPatch) -> None:
    def unordered(self: Parts) -> list[Batch]:
        self._take_all()
        return [batch for batch in self._part.batches if batch.sender == self.me] + self.inner.unordered()

    patch.setattr(Parts, "unordered", unordered)


def _end(self: Parts) -> None:
    for batch in self._part.end():
        self.queue_ordered(batch)
    self._part_ends.append(self.position_next)


IN_A_VIEW: list[Mutant] = [
    (a_part_ends_with_a_packet, TIME, {TOTAL_ORDER}),
    (a_part_is_not_sorted, TIME, {PRIORITY}),
    (a_part_is_not_sorted, COUNT, {PRIORITY}),
    (one_more_is_in_a_full_part, COUNT, {PRIORITY}),
    (equals_are_reversed, TIME, {FIFO_AMONG_EQUALS}),
    (a_control_message_has_a_position, TIME, {TOTAL_ORDER}),
    (nobody_ends_an_incomplete_part, COUNT, {LIVENESS}),
    (nobody_ends_an_incomplete_part, TIME, {LIVENESS}),
    (what_is_in_a_part_is_not_consumed_below, TIME, {LIVENESS}),
    (the_rest_of_a_batch_is_consumed_with_its_start, COUNT, {LIVENESS, AGREEMENT}),
]
AT_ITS_END: list[Mutant] = [
    (an_open_part_is_lost, TIME, {INTEGRITY}),
    (what_was_not_taken_is_lost, COUNT, {INTEGRITY}),
    (control_messages_are_sent_again, TIME, {INTEGRITY}),
]


def _names(mutants: list[Mutant]) -> list[str]:
    return [f"{order.partition('/')[0]}-{mutate.__name__}" for mutate, order, _ in mutants]


def _two_parts_while_one_member_is_late() -> Group:
    """Two parts at a, whose packets b receives together."""
    group = Group(["a", "b"], TIME, OrderingOptions(part_ms=1))
    for priority, payload in ((0, b"low"), (255, b"high")):
        group.broadcast("a", priority, [payload])
        group.turn("a")
        group.now += MILLISECOND
        group.tick()
        group.turn("a")
    group.deliver("a", "b", 10)
    group.settle(rounds_max=100)
    return group


def test_receiver_cut_in_band_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    check_all(_two_parts_while_one_member_is_late())
    every_member_ends_parts_by_its_own_timer(monkeypatch)
    with pytest.raises(Violation, match=TOTAL_ORDER):
        check_all(_two_parts_while_one_member_is_late())


@pytest.mark.parametrize(("mutate", "order", "guarantees"), IN_A_VIEW, ids=_names(IN_A_VIEW))
def test_the_property_suite_finds_the_mutant_of_parts(
    mutate: Patch, order: str, guarantees: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found_in_schedules(order, guarantees)


@pytest.mark.parametrize(("mutate", "order", "guarantees"), AT_ITS_END, ids=_names(AT_ITS_END))
def test_view_sequences_find_the_mutant_of_parts(
    mutate: Patch, order: str, guarantees: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found_in_view_sequences(order, guarantees)
