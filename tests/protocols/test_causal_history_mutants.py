"""Deliberate faults in causal history: what each rule is there for, and the check that finds it missing."""

from typing import Any

import pytest

from priocast.core.guarantees import (
    AGREEMENT,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.core.message import Batch
from priocast.core.protocol import Broadcast, Received
from priocast.protocols.history.causal import CausalHistory, Null, Stamped, _History
from protocols import test_causal_history
from protocols.mutants import (
    OWN_FAULT,
    PEER_FAULT,
    PLAIN,
    Mutant,
    Patch,
    found_in_schedules,
    found_in_view_sequences,
    name_of,
    schedules_find,
    script_finds,
    single_test_finds,
)
from protocols.trusting import trusting

DIVERGED = (TOTAL_ORDER, AGREEMENT, INTEGRITY, PEER_FAULT, OWN_FAULT)


def a_silent_member_stays_silent(patch: pytest.MonkeyPatch) -> None:
    """Figure 4 as it is drawn: `history-null-liveness`."""
    patch.setattr(CausalHistory, "_catch_up", lambda *_: None)


def null_messages_are_answered(patch: pytest.MonkeyPatch) -> None:
    def on_received(self: CausalHistory, event: Received, now: int) -> None:
        original(self, event, now)
        if isinstance(event.packet, Null):
            self._awaited = max(self._awaited, event.packet.timestamp + 1)

    original = CausalHistory.on_received
    patch.setattr(CausalHistory, "on_received", on_received)


def a_null_message_is_as_late_as_the_message(patch: pytest.MonkeyPatch) -> None:
    """It must be as late as the end of the bucket, or an idle group waits for ever."""

    def on_received(self: CausalHistory, event: Received, now: int) -> None:
        awaited = self._awaited
        original(self, event, now)
        if isinstance(event.packet, Stamped):
            self._awaited = max(awaited, event.packet.timestamp)

    original = CausalHistory.on_received
    patch.setattr(CausalHistory, "on_received", on_received)


def stamped_when_broadcast(patch: pytest.MonkeyPatch) -> None:
    """`history-stamp-at-send`: what is urgent leaves first, and has a later timestamp."""

    def on_broadcast(self: CausalHistory, event: Broadcast, now: int) -> None:
        self._clock += 1
        stamps = self.__dict__.setdefault("stamps", {})
        stamps[event.batch.level, event.batch.first] = self._clock
        broadcast(self, event, now)

    def send_all(self: CausalHistory, packet: Any) -> None:
        if isinstance(packet, Stamped):
            first = packet.batches[0]
            stamp = self.__dict__["stamps"].get((first.level, first.first), packet.timestamp)
            packet = Stamped(stamp, packet.batches, packet.bottleneck)
        send(self, packet)

    broadcast, send = CausalHistory.on_broadcast, CausalHistory.send_all
    patch.setattr(CausalHistory, "on_broadcast", on_broadcast)
    patch.setattr(CausalHistory, "send_all", send_all)


def a_member_need_not_hear_itself(patch: pytest.MonkeyPatch) -> None:
    """`history-own-message`: one's own clock is further than what came back."""

    def place_buckets(self: CausalHistory) -> None:
        own = self._histories[self.ranks[self.me]]
        heard, own.heard = own.heard, self._said
        original(self)
        own.heard = heard

    original = CausalHistory._place_buckets
    patch.setattr(CausalHistory, "_place_buckets", place_buckets)
    patch.setattr(_History, "packet_at", lambda *_: 1)


def one_member_s_word_is_enough(patch: pytest.MonkeyPatch) -> None:
    def place_buckets(self: CausalHistory) -> None:
        heard = [history.heard for history in self._histories]
        for history in self._histories:
            history.heard = max(heard)
        original(self)
        for history, before in zip(self._histories, heard, strict=True):
            history.heard = before

    original = CausalHistory._place_buckets
    patch.setattr(CausalHistory, "_place_buckets", place_buckets)
    patch.setattr(_History, "packet_at", lambda *_: 1)


def a_bucket_is_delivered_as_it_fills(patch: pytest.MonkeyPatch) -> None:
    def place_buckets(self: CausalHistory) -> None:
        complete = min(history.heard for history in self._histories)
        self._place_bucket(complete)

    patch.setattr(CausalHistory, "_place_buckets", place_buckets)


def a_frame_is_turned_round(patch: pytest.MonkeyPatch) -> None:
    def add(self: _History, timestamp: int, number: int, batches: tuple[Batch, ...]) -> None:
        original(self, timestamp, number, batches[::-1])

    original = _History.add
    patch.setattr(_History, "add", add)


def a_message_rests_on_what_came_last(patch: pytest.MonkeyPatch) -> None:
    """Members know the place from different packets, by the order in which they came."""
    patch.setattr(_History, "packet_at", lambda self, _: self._packets[-1][1])


def the_plain_twin_honours_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalHistory, "_precedence", lambda _, batch: -max(batch.priorities, default=batch.level))


def less_urgent_goes_first(patch: pytest.MonkeyPatch) -> None:
    """Figure 4 taken at its word: `history-priority-sense`."""
    patch.setattr(CausalHistory, "_precedence", lambda _, batch: batch.urgency)


def priorities_do_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalHistory, "_precedence", lambda *_: 0)


def there_are_no_buckets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalHistory, "_bucket_end", lambda _, timestamp: timestamp)


IN_SCHEDULES: list[Mutant] = [
    (a_silent_member_stays_silent, (LIVENESS,)),
    (null_messages_are_answered, (LIVENESS,)),
    (a_null_message_is_as_late_as_the_message, (LIVENESS,)),
    (trusting(stamped_when_broadcast), (TOTAL_ORDER,)),
    (one_member_s_word_is_enough, DIVERGED),
    (a_bucket_is_delivered_as_it_fills, DIVERGED),
    (a_frame_is_turned_round, (FIFO_AMONG_EQUALS, PEER_FAULT)),
    (less_urgent_goes_first, (PRIORITY,)),
    (priorities_do_nothing, (PRIORITY,)),
    (there_are_no_buckets, (PRIORITY,)),
]

IN_SCRIPTS: list[tuple[Patch, str]] = [
    (less_urgent_goes_first, "history-priority-sense"),
    (priorities_do_nothing, "history-equal-timestamps"),
    (the_plain_twin_honours_priorities, "history-equal-timestamps"),
    (there_are_no_buckets, "history-bucket-causal"),
    (stamped_when_broadcast, "history-stamp-at-send"),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules_find(mutant, "causal-history", monkeypatch)


def test_the_schedules_find_a_plain_twin_with_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    the_plain_twin_honours_priorities(monkeypatch)
    found_in_schedules("causal-history", (PRIORITY,), PLAIN)


def test_history_own_message_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_causal_history.TestOneSOwnMessages().test_history_own_message
    fault = "something of rank 0 has timestamp 1, too"
    single_test_finds(a_member_need_not_hear_itself, case, monkeypatch, match=fault)


def test_the_lives_find_who_knows_places_by_the_order_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    a_message_rests_on_what_came_last(monkeypatch)
    found_in_view_sequences("causal-history", (VIEW_SYNCHRONY,))


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_a_script_finds_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script_finds(mutate, script, monkeypatch)
