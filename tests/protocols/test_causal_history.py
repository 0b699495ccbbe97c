"""Causal history: what it refuses, when it speaks, and in which order a bucket is delivered.

What it does when everybody behaves is in `scripts/` and in the property suite.
"""

from collections import defaultdict
from functools import partial

import pytest
from hypothesis import given, settings

from core.builders import A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import Consume, LinkBlocked, MoreToDo, OrderingOptions, Packet, Send, SendAll
from priocast.core.starvation import Strict
from priocast.protocols.flow.grants import Consumed
from priocast.protocols.history.causal import CausalHistory, Null, Stamped
from protocols import harness
from protocols.schedules import Case, cases, play
from protocols.single_member import VIEW, hear, member_of, placed, say, say_frames, turn

_member = partial(member_of, CausalHistory)


def _turn(member: CausalHistory) -> list[Packet]:
    """What a member says to all in a turn; it does not hear that itself."""
    return [output.packet for output in turn(member) if isinstance(output, SendAll)]


def _complete(member: CausalHistory, timestamp: int) -> None:
    """Let everybody say that there is nothing more up to this time."""
    for sender in VIEW.members:
        hear(member, sender, Null(timestamp))


class TestWhatIsRefused:
    @pytest.mark.parametrize("timestamp", [1, 4, 5])
    def test_a_clock_that_does_not_go_forward(self, timestamp: int) -> None:
        member = _member(A)
        hear(member, B, Stamped(5, (batch_of(1, sender=B),)))
        with pytest.raises(PeerFault, match=f"b#1 says {timestamp} after 5: its clock does not go forward"):
            hear(member, B, Null(timestamp))

    def test_a_forged_sender(self) -> None:
        with pytest.raises(PeerFault, match="c#1 submits a message of b#1"):
            hear(_member(A), C, Stamped(1, (batch_of(1, sender=B),)))

    def test_consumption_that_cannot_be(self) -> None:
        with pytest.raises(PeerFault, match="b#1 reports 5 messages consumed, which cannot be"):
            hear(_member(A), B, Consumed(5, 16))


class TestOneSOwnMessages:
    def test_history_own_message(self) -> None:
        """One's own message counts although it is still on its way to oneself."""
        member = _member(A)
        say(member, batch_of(1))
        (own,) = _turn(member)
        hear(member, B, Stamped(1, (batch_of(1, sender=B),)))
        hear(member, C, Null(1))
        assert placed(member) == [], "b has rank 1, and something of rank 0 has timestamp 1, too"
        hear(member, A, own)
        assert placed(member) == ["a#1/0/0+1", "b#1/0/0+1"]

    def test_a_member_is_idle_when_all_that_it_knows_of_has_a_place(self) -> None:
        member = _member(A)
        say(member, batch_of(1))
        assert not member.idle
        (own,) = _turn(member)
        hear(member, A, own)
        assert (member.idle, member.settled) == (False, False)
        for sender in (B, C):
            hear(member, sender, Null(1))
        assert (member.idle, member.settled) == (True, True)
        hear(member, B, Stamped(2, (batch_of(1, sender=B),)))
        assert (member.idle, member.settled) == (False, True), "others need its null message"

    def test_what_has_no_place_goes_back_to_its_sender(self) -> None:
        member = _member(A)
        say(member, batch_of(2, 7))
        (own,) = _turn(member)
        hear(member, A, own)
        hear(member, B, Null(1))
        assert placed(member) == []
        assert [str(batch) for batch in member.unordered()] == ["a#1/7/0+2"]


class TestTimestamps:
    def test_a_message_is_later_than_all_that_came_before(self) -> None:
        member = _member(A)
        hear(member, B, Null(41))
        say(member, batch_of(1))
        assert _turn(member) == [Stamped(42, (batch_of(1),))]

    def test_null_messages_answer_messages_and_nothing_else(self) -> None:
        member = _member(A)
        hear(member, B, Null(3))
        assert _turn(member) == []
        hear(member, B, Stamped(5, (batch_of(1, sender=B),)))
        assert _turn(member) == [Null(5)]
        assert _turn(member) == []

    def test_one_null_message_answers_all_that_came(self) -> None:
        member = _member(A)
        hear(member, B, Stamped(5, (batch_of(1, sender=B),)))
        hear(member, C, Stamped(9, (batch_of(1, sender=C),)))
        assert _turn(member) == [Null(9)]

    def test_a_null_message_is_as_late_as_the_end_of_the_bucket(self) -> None:
        member = _member(A, bucket=16)
        hear(member, B, Stamped(17, (batch_of(1, sender=B),)))
        assert _turn(member) == [Null(32)]
        say(member, batch_of(1))
        assert _turn(member) == [Stamped(33, (batch_of(1),))]

    def test_a_plain_group_has_no_buckets(self) -> None:
        options = OrderingOptions(prioritised=False, bucket=16)
        member = CausalHistory(A, VIEW, options)
        hear(member, B, Stamped(3, (batch_of(1, 0, sender=B),)))
        assert _turn(member) == [Null(3)]

    def test_while_a_link_is_full_nothing_is_said(self) -> None:
        member = _member(A)
        say(member, batch_of(1))
        hear(member, B, Stamped(5, (batch_of(1, sender=B),)))
        member.step(LinkBlocked(C), now=0)
        assert turn(member) == []
        assert member.backlog == 1

    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(A, window=1_000)
        say_frames(member, 9)
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        (last,) = _turn(member)
        assert isinstance(last, Stamped)
        assert last.timestamp == 9


class TestBuckets:
    @pytest.mark.parametrize("complete", [False, True])
    def test_a_bucket_is_delivered_whole_or_not_at_all(self, complete: bool) -> None:
        member = _member(A, bucket=4, position=40)
        hear(member, B, Stamped(1, (batch_of(1, sender=B),)))
        hear(member, C, Stamped(2, (batch_of(1, 9, sender=C),)))
        _complete(member, 4 if complete else 3)
        assert placed(member) == (["c#1/9/0+1", "b#1/0/0+1"] if complete else [])
        assert member.position_next == (42 if complete else 40)

    def test_the_next_bucket_comes_after_it(self) -> None:
        member = _member(A, bucket=4)
        hear(member, B, Stamped(4, (batch_of(1, sender=B),)))
        hear(member, C, Stamped(5, (batch_of(1, 9, sender=C),)))
        _complete(member, 8)
        assert placed(member) == ["b#1/0/0+1", "c#1/9/0+1"]

    def test_a_sender_s_messages_stay_in_the_order_in_which_it_sent_them(self) -> None:
        """Its first one keeps the urgent one behind it from going first, but not for longer than needed."""
        member = _member(A, bucket=8)
        hear(member, B, Stamped(1, (batch_of(1, 3, sender=B),)))
        hear(member, B, Stamped(2, (batch_of(1, 9, sender=B),)))
        hear(member, C, Stamped(1, (batch_of(1, 5, sender=C), batch_of(1, 2, sender=C))))
        _complete(member, 8)
        assert placed(member) == ["c#1/5/0+1", "b#1/3/0+1", "b#1/9/0+1", "c#1/2/0+1"]

    def test_a_message_rests_on_the_first_packets_that_say_that_its_bucket_is_complete(self) -> None:
        """And not on those that happened to come first: later ones of the same member tell as much."""
        member = _member(A)
        said: dict[ProcessId, list[Packet]] = {
            A: [Null(1), Null(3), Null(9)],
            B: [Stamped(2, (batch_of(1, sender=B),)), Null(9)],
            C: [Null(5), Null(9)],
        }
        for sender in (A, B, C):
            for number, packet in enumerate(said[sender], 1):
                hear(member, sender, packet, packet_id=(VIEW.members.index(sender), number))
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (2, 1, 1)


def test_a_sender_is_told_what_was_consumed_of_its_messages() -> None:
    member = _member(A, window=6)
    hear(member, B, Stamped(1, (batch_of(2, sender=B),)))
    _complete_with = [(A, Null(1)), (C, Null(1))]
    for sender, packet in _complete_with:
        hear(member, sender, packet)
    assert member.step(Consume(1), now=0) == [Send(B, Consumed(1, 2))]


@pytest.mark.parametrize("prioritised", [True, False])
def test_what_an_application_has_delivered_goes_before_what_it_broadcasts_then(prioritised: bool) -> None:
    """`history-bucket-causal`: Causal order, with any bucket."""

    @settings(max_examples=200)
    @given(cases("causal-history", prioritised, Strict()))
    def holds(case: Case) -> None:
        journal = play(case).journal
        position_of = {
            happened.message.payload: happened.position
            for happened in journal
            if isinstance(happened, harness.Delivered)
        }
        last: dict[str, int] = defaultdict(lambda: -1)
        for happened in journal:
            if isinstance(happened, harness.Delivered):
                last[happened.member] = happened.position
            elif isinstance(happened, harness.Broadcast):
                assert position_of[happened.payload] > last[happened.member]

    holds()


def test_batches_of_a_plain_view_go_first() -> None:
    member = _member(A)
    resent: Batch = batch_of(1, 3, sender=C).in_line()
    hear(member, B, Stamped(1, (batch_of(1, 254, sender=B),)))
    hear(member, C, Stamped(1, (resent,)))
    hear(member, A, Null(1))
    assert placed(member) == ["c#1/3/0+1", "b#1/254/0+1"]
