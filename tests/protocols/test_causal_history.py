"""Causal history: when it sends, and in which order a bucket is delivered.

What it does when all members are correct is in `scripts/` and in the property suite.
"""

from collections import defaultdict
from functools import partial

import pytest
from hypothesis import given, settings

from core.builders import A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import Consume, LinkBlocked, MoreToDo, OrderingOptions, Packet, Send, SendAll
from priocast.core.starvation import Strict
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.history.causal import CausalHistory
from priocast.protocols.history.timestamped_packets import NullMessage, StampedData
from protocols import harness
from protocols.orders import patiently
from protocols.schedules import Case, cases, play
from protocols.single_member import VIEW, hear, member_of, placed, say, say_frames, turn

_member = partial(member_of, CausalHistory)


def _turn(member: CausalHistory) -> list[Packet]:
    """What a member sends to all in a turn, without receiving it itself."""
    return [output.packet for output in turn(member) if isinstance(output, SendAll)]


def _complete(member: CausalHistory, timestamp: int) -> None:
    """Receive from all members that they send nothing more up to this timestamp."""
    for sender in VIEW.members:
        hear(member, sender, NullMessage(timestamp))


class TestOwnMessages:
    def test_history_own_message(self) -> None:
        """A member's own message counts although the member has not received it yet."""
        member = _member(A)
        say(member, batch_of(1))
        (own,) = _turn(member)
        hear(member, B, StampedData(1, (batch_of(1, sender=B),)))
        hear(member, C, NullMessage(1))
        assert placed(member) == [], "b has rank 1, and something of rank 0 has timestamp 1, too"
        hear(member, A, own)
        assert placed(member) == ["a#1/0/0+1", "b#1/0/0+1"]

    def test_a_member_is_idle_when_all_that_it_received_is_ordered(self) -> None:
        member = _member(A)
        say(member, batch_of(1))
        assert not member.idle
        (own,) = _turn(member)
        hear(member, A, own)
        assert (member.idle, member.settled) == (False, False)
        for sender in (B, C):
            hear(member, sender, NullMessage(1))
        assert (member.idle, member.settled) == (True, True)
        hear(member, B, StampedData(2, (batch_of(1, sender=B),)))
        assert (member.idle, member.settled) == (False, True), "others need its null message"

    def test_unordered_messages_go_back_to_their_sender(self) -> None:
        member = _member(A)
        say(member, batch_of(2, 7))
        (own,) = _turn(member)
        hear(member, A, own)
        hear(member, B, NullMessage(1))
        assert placed(member) == []
        assert [str(batch) for batch in member.unordered()] == ["a#1/7/0+2"]


class TestTimestamps:
    def test_a_message_is_later_than_all_that_was_received_before(self) -> None:
        member = _member(A)
        hear(member, B, NullMessage(41))
        say(member, batch_of(1))
        assert _turn(member) == [StampedData(42, (batch_of(1),))]

    def test_only_messages_cause_null_messages(self) -> None:
        member = _member(A)
        hear(member, B, NullMessage(3))
        assert _turn(member) == []
        hear(member, B, StampedData(5, (batch_of(1, sender=B),)))
        assert _turn(member) == [NullMessage(5)]
        assert _turn(member) == []

    def test_one_null_message_serves_all_that_was_received(self) -> None:
        member = _member(A)
        hear(member, B, StampedData(5, (batch_of(1, sender=B),)))
        hear(member, C, StampedData(9, (batch_of(1, sender=C),)))
        assert _turn(member) == [NullMessage(9)]

    def test_a_null_message_is_as_late_as_the_end_of_the_bucket(self) -> None:
        member = _member(A, bucket=16)
        hear(member, B, StampedData(17, (batch_of(1, sender=B),)))
        assert _turn(member) == [NullMessage(32)]
        say(member, batch_of(1))
        assert _turn(member) == [StampedData(33, (batch_of(1),))]

    def test_a_plain_group_has_no_buckets(self) -> None:
        options = OrderingOptions(prioritised=False, bucket=16)
        member = CausalHistory(A, VIEW, options)
        hear(member, B, StampedData(3, (batch_of(1, 0, sender=B),)))
        assert _turn(member) == [NullMessage(3)]

    def test_while_a_link_is_full_nothing_is_sent(self) -> None:
        member = _member(A)
        say(member, batch_of(1))
        hear(member, B, StampedData(5, (batch_of(1, sender=B),)))
        member.step(LinkBlocked(C), now=0)
        assert turn(member) == []
        assert member.backlog == 1

    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(A, window=1_000)
        say_frames(member, 9)
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        (last,) = _turn(member)
        assert isinstance(last, StampedData)
        assert last.timestamp == 9


class TestBuckets:
    @pytest.mark.parametrize("complete", [False, True])
    def test_a_bucket_is_ordered_as_a_whole(self, complete: bool) -> None:
        member = _member(A, bucket=4, position=40)
        hear(member, B, StampedData(1, (batch_of(1, sender=B),)))
        hear(member, C, StampedData(2, (batch_of(1, 9, sender=C),)))
        _complete(member, 4 if complete else 3)
        assert placed(member) == (["c#1/9/0+1", "b#1/0/0+1"] if complete else [])
        assert member.position_next == (42 if complete else 40)

    def test_the_next_bucket_comes_after_it(self) -> None:
        member = _member(A, bucket=4)
        hear(member, B, StampedData(4, (batch_of(1, sender=B),)))
        hear(member, C, StampedData(5, (batch_of(1, 9, sender=C),)))
        _complete(member, 8)
        assert placed(member) == ["b#1/0/0+1", "c#1/9/0+1"]

    def test_a_sender_s_messages_stay_in_the_order_in_which_it_sent_them(self) -> None:
        """Its first message delays the urgent one behind it, but not for longer than needed."""
        member = _member(A, bucket=8)
        hear(member, B, StampedData(1, (batch_of(1, 3, sender=B),)))
        hear(member, B, StampedData(2, (batch_of(1, 9, sender=B),)))
        hear(member, C, StampedData(1, (batch_of(1, 5, sender=C), batch_of(1, 2, sender=C))))
        _complete(member, 8)
        assert placed(member) == ["c#1/5/0+1", "b#1/3/0+1", "b#1/9/0+1", "c#1/2/0+1"]

    def test_a_message_depends_on_the_first_packets_that_complete_its_bucket(self) -> None:
        """Not on those that happened to arrive first: later ones of the same member complete it as well."""
        member = _member(A)
        said: dict[ProcessId, list[Packet]] = {
            A: [NullMessage(1), NullMessage(3), NullMessage(9)],
            B: [StampedData(2, (batch_of(1, sender=B),)), NullMessage(9)],
            C: [NullMessage(5), NullMessage(9)],
        }
        for sender in (A, B, C):
            for number, packet in enumerate(said[sender], 1):
                hear(member, sender, packet, packet_id=(VIEW.members.index(sender), number))
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (2, 1, 1)


def test_a_sender_gets_reports_about_its_messages() -> None:
    member = _member(A, window=6)
    hear(member, B, StampedData(1, (batch_of(2, sender=B),)))
    _complete_with = [(A, NullMessage(1)), (C, NullMessage(1))]
    for sender, packet in _complete_with:
        hear(member, sender, packet)
    assert member.step(Consume(1), now=0) == [Send(B, Consumed(1, 2))]


@pytest.mark.parametrize("prioritised", [True, False])
def test_what_an_application_has_delivered_precedes_what_it_broadcasts_then(prioritised: bool) -> None:
    """`history-bucket-causal`: Causal order, with any bucket."""

    @settings(max_examples=patiently(100))
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
    hear(member, B, StampedData(1, (batch_of(1, 254, sender=B),)))
    hear(member, C, StampedData(1, (resent,)))
    hear(member, A, NullMessage(1))
    assert placed(member) == ["c#1/3/0+1", "b#1/254/0+1"]
