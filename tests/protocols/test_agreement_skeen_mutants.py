"""Deliberate faults in Skeen's agreement: one plausible mistake each, and the guarantee that finds it."""

import pytest

from priocast.core.guarantees import LIVENESS, PRIORITY, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.protocols.agreement.skeen import AgreementSkeen
from priocast.protocols.agreement.skeen_packets import FinalTimestamps, ProposedTimestamps
from priocast.protocols.flow.data import NumberedData
from protocols.harness import Group
from protocols.mutants import (
    Mutant,
    Patch,
    check_found_in_view_sequences,
    check_schedules_find,
    name_of,
    recorded,
)
from protocols.shared_mutants import a_sender_sends_what_came_first
from protocols.test_scripts import replay
from protocols.trusting import trusting
from protocols.view_sequences import End, ViewPlan, end_view

ORDER = "agreement-skeen"


def the_lowest_proposal_is_final(patch: pytest.MonkeyPatch) -> None:
    """The first of the two rules that the paper leaves open."""

    def on_proposed(self: AgreementSkeen, sender: ProcessId, proposed: ProposedTimestamps) -> None:
        first, timestamps = proposed.first, proposed.timestamps
        self._proposals[sender].check(sender, first, timestamps, self._sent_count)
        for index, timestamp in enumerate(timestamps, first - self._final_count):
            self._highest[index] = min(self._highest[index] or timestamp, timestamp)

    patch.setattr(AgreementSkeen, "_on_proposed", on_proposed)


def nobody_rejects_the_lowest_proposal(patch: pytest.MonkeyPatch) -> None:
    def on_final(
        self: AgreementSkeen, sender: ProcessId, final: FinalTimestamps, packet_id: PacketId
    ) -> None:
        undecided = [frame for frame in self._frames[sender] if not frame.packet_id]
        for frame, timestamp in zip(undecided, final.timestamps, strict=False):
            frame.timestamp = min(frame.timestamp, timestamp)
        original(self, sender, final, packet_id)

    original = AgreementSkeen._on_final
    patch.setattr(AgreementSkeen, "_on_final", on_final)
    the_lowest_proposal_is_final(patch)


def clocks_are_not_raised(patch: pytest.MonkeyPatch) -> None:
    """The second of the two rules."""

    def on_final(
        self: AgreementSkeen, sender: ProcessId, final: FinalTimestamps, packet_id: PacketId
    ) -> None:
        clock = self._clock
        original(self, sender, final, packet_id)
        self._clock = clock

    original = AgreementSkeen._on_final
    patch.setattr(AgreementSkeen, "_on_final", on_final)


def the_clock_stands_still(patch: pytest.MonkeyPatch) -> None:
    """All frames that arrive before a final timestamp get the same proposal."""

    def on_data(self: AgreementSkeen, sender: ProcessId, data: NumberedData) -> None:
        self._clock = min(self._clock, 0)
        original(self, sender, data)

    original = AgreementSkeen._on_data
    patch.setattr(AgreementSkeen, "_on_data", on_data)


def what_is_final_is_ordered_at_once(patch: pytest.MonkeyPatch) -> None:
    def append_final(self: AgreementSkeen) -> None:
        for frames in self._frames.values():
            while frames and frames[0].packet_id is not None:
                for batch in frames.popleft().batches:
                    self.append(batch)

    patch.setattr(AgreementSkeen, "_append_final", append_final)


def proposals_that_a_full_link_delays_are_lost(patch: pytest.MonkeyPatch) -> None:
    def send_proposals(self: AgreementSkeen) -> None:
        for sender in self.blocked:
            self._proposals_due[sender].clear()
        original(self)

    original = AgreementSkeen._send_proposals
    patch.setattr(AgreementSkeen, "_send_proposals", send_proposals)


def a_view_ends_with_what_is_ordered(patch: pytest.MonkeyPatch) -> None:
    """One member has ordered what waits at another one for a proposal that nobody else knows."""
    patch.setattr(AgreementSkeen, "close", lambda _: None)


def a_view_ends_with_everything_by_the_known_timestamps(patch: pytest.MonkeyPatch) -> None:
    """What a member has proposed is not known to others."""

    def close(self: AgreementSkeen) -> None:
        for frames in self._frames.values():
            for frame in frames:
                frame.packet_id = frame.packet_id or (0, 0)
        self._append_final()

    patch.setattr(AgreementSkeen, "close", close)


IN_SCHEDULES: list[Mutant] = [
    (trusting(the_lowest_proposal_is_final), {TOTAL_ORDER}),
    (nobody_rejects_the_lowest_proposal, {TOTAL_ORDER}),
    (trusting(the_clock_stands_still), {TOTAL_ORDER}),
    (what_is_final_is_ordered_at_once, {TOTAL_ORDER}),
    (a_sender_sends_what_came_first, {PRIORITY}),
    (proposals_that_a_full_link_delays_are_lost, {LIVENESS}),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_property_suite_finds_the_mutant_of_skeen(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_schedules_find(mutant, ORDER, monkeypatch)


def _end_a_view_that_lacks_a_final_timestamp() -> dict[str, End]:
    """X is final. a has ordered it, but at b y could still precede it, whose sender c has failed."""
    group = Group(["a", "b", "c"], ORDER, OrderingOptions())
    for name, payload in (("c", b"y"), ("a", b"x")):
        group.broadcast(name, 0, [payload])
        group.turn(name)
        group.deliver(name, "b")
    group.deliver("a", "c")
    for name in ("b", "c"):
        group.turn(name)
        group.deliver(name, "a", 2)
    group.turn("a")
    group.deliver("a", "b", 2)
    assert group.consume("a", 2) == 1
    assert group.consume("b", 2) == 0
    return end_view(group, ViewPlan(ORDER, group.options, [], 0b011, 0, 100, assembled=True))


def test_a_view_ends_with_all_final_timestamps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [end.position for end in _end_a_view_that_lacks_a_final_timestamp().values()] == [1, 1]
    a_view_ends_with_what_is_ordered(monkeypatch)
    assert [end.position for end in _end_a_view_that_lacks_a_final_timestamp().values()] == [1, 0]


def test_view_sequences_find_that_private_proposals_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    a_view_ends_with_everything_by_the_known_timestamps(monkeypatch)
    check_found_in_view_sequences(ORDER, {VIEW_SYNCHRONY})


@pytest.mark.parametrize(
    ("case", "mutate"),
    [
        ("skeen-maximum", nobody_rejects_the_lowest_proposal),
        ("skeen-clock-raise", clocks_are_not_raised),
    ],
)
def test_the_script_shows_two_orders(case: str, mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    text = recorded(case)
    assert replay(text).count("delivered:") == 1
    mutate(monkeypatch)
    assert replay(text).count("delivered:") == 2
