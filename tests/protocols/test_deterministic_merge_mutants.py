"""Deliberate faults in the merge: one plausible mistake each, and the guarantee that finds it."""

from collections.abc import Callable

import pytest

from priocast.core.guarantees import LIVENESS, PRIORITY, TOTAL_ORDER
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, PacketId, Received
from priocast.protocols.history import merge as deterministic_merge
from priocast.protocols.history.merge import DeterministicMerge
from priocast.protocols.history.merge_packets import SkippedSlots, Slot
from protocols.guarantees import check_total_order
from protocols.harness import Delivered, Group, Violation
from protocols.mutants import (
    Mutant,
    Patch,
    check_schedules_find,
    check_script_finds,
    check_single_test_finds,
    name_of,
)
from protocols.shared_mutants import a_sender_sends_what_came_first
from protocols.trusting import ignoring

ORDER = "deterministic-merge"


def nobody_skips_slots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeterministicMerge, "_skip_slots", lambda _: None)


def dummies_cause_dummies(patch: pytest.MonkeyPatch) -> None:
    """The papers' members send dummies as long as they have nothing else to send."""

    def on_received(self: DeterministicMerge, event: Received, now: int) -> None:
        original(self, event, now)
        if isinstance(event.packet, SkippedSlots) and event.sender != self.me:
            self._rounds_awaited = max(self._rounds_awaited, event.packet.round + event.packet.count + 1)

    original = DeterministicMerge.on_received
    patch.setattr(DeterministicMerge, "on_received", on_received)


def slots_are_skipped_up_to_one_round_too_few(patch: pytest.MonkeyPatch) -> None:
    def skip_slots(self: DeterministicMerge) -> None:
        self._rounds_awaited -= 1
        original(self)
        self._rounds_awaited += 1

    original = DeterministicMerge._skip_slots
    patch.setattr(DeterministicMerge, "_skip_slots", skip_slots)


def slots_are_merged_as_they_arrive(patch: pytest.MonkeyPatch) -> None:
    def on_filled(
        self: DeterministicMerge,
        sender: ProcessId,
        packet: Slot | SkippedSlots,
        count: int,
        packet_id: PacketId,
    ) -> None:
        original(self, sender, packet, count, packet_id)
        self._merging = (packet.round, self.ranks[sender])

    def merge(self: DeterministicMerge) -> None:
        filled = self._filled[self._merging[1]].popleft()
        if isinstance(filled.packet, Slot):
            for batch in filled.packet.batches:
                self.append(batch)

    original = DeterministicMerge._on_filled
    patch.setattr(DeterministicMerge, "_on_filled", on_filled)
    patch.setattr(DeterministicMerge, "_merge", merge)
    there_is_no_pace(patch)


def a_round_is_merged_without_late_slots(patch: pytest.MonkeyPatch) -> None:
    def merge(self: DeterministicMerge) -> None:
        original(self)
        round_, rank = self._merging
        if self.me == self.view.members[-1] and not self._filled[rank] and any(self._filled):
            self._merging = (round_, rank + 1) if rank + 1 < len(self._filled) else (round_ + 1, 0)

    original = DeterministicMerge._merge
    patch.setattr(DeterministicMerge, "_merge", merge)


def there_is_no_pace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deterministic_merge, "_UNMERGED_MAX", 1_000)


def skips_of_others_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def on_filled(
        self: DeterministicMerge,
        sender: ProcessId,
        packet: Slot | SkippedSlots,
        count: int,
        packet_id: PacketId,
    ) -> None:
        original(self, sender, packet, 1, packet_id)

    original = DeterministicMerge._on_filled
    patch.setattr(DeterministicMerge, "_on_filled", on_filled)


IN_SCHEDULES: list[Mutant] = [
    (nobody_skips_slots, {LIVENESS}),
    (dummies_cause_dummies, {LIVENESS}),
    (slots_are_skipped_up_to_one_round_too_few, {LIVENESS}),
    (slots_are_merged_as_they_arrive, {TOTAL_ORDER}),
    (a_sender_sends_what_came_first, {PRIORITY}),
    (ignoring(skips_of_others_are_not_counted), {LIVENESS}),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_property_suite_finds_the_mutant_of_the_merge(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_schedules_find(mutant, ORDER, monkeypatch)


def slots_cross() -> None:
    """Both members fill their slots of round 0 before they receive anything: b's own slot is not the next."""
    group = Group(["a", "b"], ORDER, OrderingOptions())
    for name in ("a", "b"):
        group.broadcast(name, 0, [name.encode()])
        group.turn(name)
    assert group.deliver("a", "b") == group.deliver("b", "a") == 1
    assert group.consume("a", 2) == group.consume("b", 2) == 2
    check_total_order(group.journal)


@pytest.mark.parametrize(
    ("mutate", "case", "guarantee"), [(a_round_is_merged_without_late_slots, slots_cross, TOTAL_ORDER)]
)
def test_a_case_finds_the_mutant_of_the_merge(
    mutate: Patch, case: Callable[[], None], guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_single_test_finds(mutate, case, monkeypatch, Violation, match=f"^{guarantee}: ")


def _urgent_after_a_stream(count: int) -> list[bytes]:
    """What member a delivers if it sends an urgent message after `count` routine ones, and b is late."""
    group = Group(["b", "a"], ORDER, OrderingOptions(window=128))
    for number in range(count):
        group.broadcast("a", 0, [b"%d" % number])
        group.turn("a")
    group.broadcast("a", 255, [b"urgent"])
    assert group.settle(rounds_max=1_000)
    return [
        said.message.payload for said in group.journal if isinstance(said, Delivered) and said.member == "a"
    ]


def test_without_a_pace_an_urgent_message_waits_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Priorities act in the send queue only: without a pace it is empty, and they do nothing."""
    assert _urgent_after_a_stream(20).index(b"urgent") == 2
    there_is_no_pace(monkeypatch)
    assert _urgent_after_a_stream(20).index(b"urgent") == 20


def test_the_script_finds_that_there_is_no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(there_is_no_pace, "merge-pace", monkeypatch)
