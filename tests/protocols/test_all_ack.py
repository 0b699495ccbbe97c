"""All-ack: when a silent member acknowledges. The order itself is that of causal history, in the same code.

What it does when all members are correct is in `scripts/` and in the property suite.
"""

from functools import partial

from core.builders import A, B, C, batch_of
from priocast.core.message import Batch
from priocast.core.protocol import (
    CancelTimer,
    LinkBlocked,
    LinkCleared,
    Output,
    SendAll,
    SetTimer,
    TimerFired,
)
from priocast.protocols.history.all_ack import AllAck
from priocast.protocols.history.timestamped_packets import NullMessage, StampedData
from protocols.single_member import hear, member_of, placed, say, turn

MS = 1_000_000
_member = partial(member_of, AllAck, acknowledge_ms=10)


def _of_b(timestamp: int, first: int = 0) -> StampedData:
    return StampedData(timestamp, (batch_of(1, sender=B, first=first),))


def _timer(outputs: list[Output]) -> SetTimer:
    (timer,) = outputs
    assert isinstance(timer, SetTimer)
    return timer


def _expire(member: AllAck, timer: SetTimer) -> list[Output]:
    assert member.step(TimerFired(timer.name), timer.at) == []
    return turn(member, timer.at)


def _all_of(*batches: Batch, timestamp: int) -> SendAll:
    return SendAll(StampedData(timestamp, batches))


class TestSilence:
    def test_a_silent_member_acknowledges_after_the_time(self) -> None:
        member = _member(A)
        hear(member, B, _of_b(1), now=5 * MS)
        timer = _timer(turn(member, 5 * MS))
        assert timer.at == 15 * MS
        assert turn(member, 15 * MS - 1) == []
        sent, cancelled = _expire(member, timer)
        assert (sent, type(cancelled)) == (SendAll(NullMessage(1)), CancelTimer)

    def test_one_acknowledgement_is_for_all_that_was_received(self) -> None:
        member = _member(A)
        hear(member, B, _of_b(1))
        timer = _timer(turn(member))
        hear(member, B, _of_b(7, first=1), now=9 * MS)
        assert turn(member, 9 * MS) == [], "the time counts from the first message that waits"
        assert _expire(member, timer)[0] == SendAll(NullMessage(7))

    def test_an_own_message_acknowledges(self) -> None:
        member = _member(A)
        hear(member, B, _of_b(1))
        timer = _timer(turn(member))
        say(member, batch_of(1))
        sent, cancelled = turn(member, MS)
        assert sent == _all_of(batch_of(1), timestamp=2)
        assert cancelled == CancelTimer(timer.name)

    def test_every_silence_is_timed_anew(self) -> None:
        member = _member(A)
        hear(member, B, _of_b(1))
        _timer(turn(member))
        say(member, batch_of(1))
        turn(member, 9 * MS)
        hear(member, B, _of_b(3, first=1), now=20 * MS)
        assert _timer(turn(member, 20 * MS)).at == 30 * MS

    def test_an_acknowledgement_waits_for_a_full_link(self) -> None:
        member = _member(A)
        hear(member, B, _of_b(1))
        timer = _timer(turn(member))
        member.step(LinkBlocked(C), now=0)
        assert _expire(member, timer) == []
        member.step(LinkCleared(C), now=11 * MS)
        assert turn(member, 11 * MS)[0] == SendAll(NullMessage(1))

    def test_nobody_acknowledges_an_acknowledgement(self) -> None:
        member = _member(A)
        hear(member, B, NullMessage(3))
        assert turn(member) == []


def test_pending_messages_are_delivered_at_once_when_the_slowest_sends() -> None:
    """Figure 8(b) of the adaptive paper."""
    member = _member(A)
    hear(member, A, NullMessage(9))
    for timestamp in (1, 2, 3):
        hear(member, B, _of_b(timestamp, first=timestamp - 1))
        assert placed(member) == []
    hear(member, C, StampedData(4, (batch_of(1, sender=C),)))
    assert placed(member) == ["b#1/0/0+1", "b#1/0/1+1", "b#1/0/2+1"], "c's own message waits for b"
