"""Deliberate faults in all-ack: what each rule about silence is for, and the check that finds it missing.

The rules about timestamps and buckets are in the code that it shares with causal history, and tested there.
"""

from typing import Any

import pytest

from priocast.core.guarantees import LIVENESS, TOTAL_ORDER
from priocast.protocols.history.all_ack import AllAck
from priocast.protocols.history.timestamped import _MemberHistory
from protocols import test_all_ack
from protocols.mutants import (
    Mutant,
    check_schedules_find,
    check_script_finds,
    check_single_test_finds,
    name_of,
)


def a_silent_member_never_acknowledges(patch: pytest.MonkeyPatch) -> None:
    """The paper's comparison taken literally."""
    patch.setattr(AllAck, "null_is_due", lambda *_: False)


def only_the_first_silence_is_timed(patch: pytest.MonkeyPatch) -> None:
    def on_turn(self: AllAck, *turn: Any) -> None:
        before = self._null_at
        original(self, *turn)
        self._null_at = before if self._null_at is None else self._null_at

    original = AllAck.on_turn
    patch.setattr(AllAck, "on_turn", on_turn)
    patch.setattr(AllAck, "null_is_due", lambda self, now: now == self._null_at)


def a_received_message_postpones_the_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    def on_received(self: AllAck, *event: Any) -> None:
        original(self, *event)
        self._null_at = None

    original = AllAck.on_received
    patch.setattr(AllAck, "on_received", on_received)


def an_acknowledgement_is_sent_at_once(patch: pytest.MonkeyPatch) -> None:
    """Causal history."""
    patch.setattr(AllAck, "null_is_due", lambda *_: True)


def silent_members_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    def receive(self: AllAck, *packet: Any) -> None:
        original(self, *packet)
        self._complete = max(history.clock for history in self._histories)
        self._append_buckets()

    original = AllAck._receive
    patch.setattr(AllAck, "_receive", receive)
    patch.setattr(_MemberHistory, "packet_at", lambda *_: 1)


IN_SCHEDULES: list[Mutant] = [
    (a_silent_member_never_acknowledges, (LIVENESS,)),
    (only_the_first_silence_is_timed, (LIVENESS,)),
    (silent_members_are_not_waited_for, (TOTAL_ORDER,)),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_schedules_find_the_mutant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedules_find(mutant, "all-ack", monkeypatch)


def test_a_script_finds_acknowledgements_that_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(an_acknowledgement_is_sent_at_once, "all-ack-waits-for-the-slowest", monkeypatch)


def test_a_stream_of_messages_does_not_postpone_the_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    case = test_all_ack.TestSilence().test_one_acknowledgement_is_for_all_that_was_received
    check_single_test_finds(a_received_message_postpones_the_acknowledgement, case, monkeypatch)
