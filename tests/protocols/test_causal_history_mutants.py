"""Deliberate faults in causal history: what each rule is there for, and the check that finds it missing."""

from typing import Any

import pytest

from priocast.core.guarantees import (
    FIFO_AMONG_EQUALS,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.core.message import Batch
from priocast.core.protocol import Broadcast, Received
from priocast.protocols.history.causal import CausalHistory
from priocast.protocols.history.timestamped import _MemberHistory
from priocast.protocols.history.timestamped_packets import NullMessage, StampedData
from protocols import test_causal_history
from protocols.mutants import (
    PLAIN,
    Mutant,
    Patch,
    check_found_in_schedules,
    check_found_in_view_sequences,
    check_schedules_find,
    check_script_finds,
    check_single_test_finds,
    name_of,
)
from protocols.trusting import trusting


def a_silent_member_stays_silent(patch: pytest.MonkeyPatch) -> None:
    """Figure 4 taken literally: `history-null-liveness`."""
    patch.setattr(CausalHistory, "_send_null", lambda *_: None)


def null_messages_cause_null_messages(patch: pytest.MonkeyPatch) -> None:
    def on_received(self: CausalHistory, event: Received, now: int) -> None:
        original(self, event, now)
        if isinstance(event.packet, NullMessage):
            self._awaited_timestamp = max(self._awaited_timestamp, event.packet.timestamp + 1)

    original = CausalHistory.on_received
    patch.setattr(CausalHistory, "on_received", on_received)


def a_null_message_is_as_late_as_the_message(patch: pytest.MonkeyPatch) -> None:
    """It must be as late as the end of the bucket, or an idle group waits for ever."""

    def on_received(self: CausalHistory, event: Received, now: int) -> None:
        awaited = self._awaited_timestamp
        original(self, event, now)
        if isinstance(event.packet, StampedData):
            self._awaited_timestamp = max(awaited, event.packet.timestamp)

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
        if isinstance(packet, StampedData):
            first = packet.batches[0]
            stamp = self.__dict__["stamps"].get((first.level, first.first), packet.timestamp)
            packet = StampedData(stamp, packet.batches, packet.bottleneck)
        send(self, packet)

    broadcast, send = CausalHistory.on_broadcast, CausalHistory.send_all
    patch.setattr(CausalHistory, "on_broadcast", on_broadcast)
    patch.setattr(CausalHistory, "send_all", send_all)


def a_member_does_not_wait_for_its_own_packets(patch: pytest.MonkeyPatch) -> None:
    """`history-own-message`: a member's own clock is ahead of the packets that it received."""

    def receive(self: CausalHistory, *packet: Any) -> None:
        original(self, *packet)
        own = self._histories[self.ranks[self.me]]
        others = [history.clock for history in self._histories if history is not own]
        self._complete = min(*others, self._sent_timestamp)
        self._append_buckets()

    original = CausalHistory._receive
    patch.setattr(CausalHistory, "_receive", receive)
    patch.setattr(_MemberHistory, "packet_at", lambda *_: 1)


def one_clock_is_enough(patch: pytest.MonkeyPatch) -> None:
    def receive(self: CausalHistory, *packet: Any) -> None:
        original(self, *packet)
        self._complete = max(history.clock for history in self._histories)
        self._append_buckets()

    original = CausalHistory._receive
    patch.setattr(CausalHistory, "_receive", receive)
    patch.setattr(_MemberHistory, "packet_at", lambda *_: 1)


def a_bucket_is_delivered_as_it_fills(patch: pytest.MonkeyPatch) -> None:
    def append_buckets(self: CausalHistory) -> None:
        self._append_bucket(self._complete)

    patch.setattr(CausalHistory, "_append_buckets", append_buckets)


def a_frame_is_reversed(patch: pytest.MonkeyPatch) -> None:
    def add(self: _MemberHistory, timestamp: int, number: int, batches: tuple[Batch, ...]) -> None:
        original(self, timestamp, number, batches[::-1])

    original = _MemberHistory.add
    patch.setattr(_MemberHistory, "add", add)


def a_message_depends_on_what_arrived_last(patch: pytest.MonkeyPatch) -> None:
    """Members know the position from different packets, by the order of their arrival."""
    patch.setattr(_MemberHistory, "packet_at", lambda self, _: self._packets[-1][1])


def the_plain_twin_honours_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalHistory, "_precedence", lambda _, batch: -max(batch.priorities, default=batch.level))


def less_urgent_goes_first(patch: pytest.MonkeyPatch) -> None:
    """Figure 4 taken literally: `history-priority-sense`."""
    patch.setattr(CausalHistory, "_precedence", lambda _, batch: batch.urgency)


def priorities_do_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalHistory, "_precedence", lambda *_: 0)


def there_are_no_buckets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CausalHistory, "_bucket_end", lambda _, timestamp: timestamp)


IN_SCHEDULES: list[Mutant] = [
    (a_silent_member_stays_silent, (LIVENESS,)),
    (null_messages_cause_null_messages, (LIVENESS,)),
    (a_null_message_is_as_late_as_the_message, (LIVENESS,)),
    (trusting(stamped_when_broadcast), (TOTAL_ORDER,)),
    (one_clock_is_enough, (TOTAL_ORDER,)),
    (a_bucket_is_delivered_as_it_fills, (TOTAL_ORDER,)),
    (a_frame_is_reversed, (FIFO_AMONG_EQUALS,)),
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
    check_schedules_find(mutant, "causal-history", monkeypatch)


def test_the_schedules_find_a_plain_twin_with_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    the_plain_twin_honours_priorities(monkeypatch)
    check_found_in_schedules("causal-history", (PRIORITY,), PLAIN)


def test_history_own_message_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_causal_history.TestOwnMessages().test_history_own_message
    fault = "something of rank 0 has timestamp 1, too"
    check_single_test_finds(a_member_does_not_wait_for_its_own_packets, case, monkeypatch, match=fault)


def test_view_sequences_find_positions_that_depend_on_the_order_of_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_message_depends_on_what_arrived_last(monkeypatch)
    check_found_in_view_sequences("causal-history", (VIEW_SYNCHRONY,))


@pytest.mark.parametrize(("mutate", "script"), IN_SCRIPTS, ids=map(name_of, IN_SCRIPTS))
def test_a_script_finds_the_mutant(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(mutate, script, monkeypatch)
