"""The fixed sequencer: how it cuts its work into frames.

What it does with correct peers is in `scripts/` and in the property suite.
"""

from functools import partial

from core.builders import A, B, C, batch_of
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.protocol import Consume, LinkBlocked, MoreToDo, Send, SendAll
from priocast.protocols.flow.packets import Consumed, Ordered, Submit
from priocast.protocols.sequencer.ub import SequencerUb
from protocols.single_member import VIEW, hear, member_of, packets, say, say_frames, turn

_member = partial(member_of, SequencerUb)


def _ordered_by(member: SequencerUb) -> list[Batch]:
    """What the sequencer orders in a turn."""
    return [batch for packet in packets(turn(member), Ordered) for batch in packet.batches]


class TestReports:
    def test_one_report_per_quarter_of_the_window(self) -> None:
        member = _member(B, window=8)
        hear(member, A, Ordered(0, (batch_of(8),)))
        reports = [member.step(Consume(1), now=0) for _ in range(8)]
        sent = {taken + 1: outputs for taken, outputs in enumerate(reports) if outputs}
        assert sent == {taken: [Send(A, Consumed(taken, 8))] for taken in (2, 4, 6, 8)}

    def test_consumption_is_counted_from_where_the_view_begins(self) -> None:
        member = _member(B, position=1_000, window=8, window_bytes=100)
        hear(member, A, Ordered(1_000, (batch_of(1, size=60), batch_of(1, first=1, size=60))))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 8))], "a quarter of the bytes"
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(2, 8))]

    def test_a_window_above_the_maximum_is_reduced_to_it(self) -> None:
        sequencer = _member(A, window=1, submit_max=100_000)
        for first in range(0, 80_000, 4_000):
            hear(sequencer, B, Submit((batch_of(4_000, first=first, sender=B),)))
        assert sum(batch.count for batch in _ordered_by(sequencer)) == 1
        for member in (A, B, C):
            hear(sequencer, member, Consumed(1, 10**9))
        ordered = 1
        while batches := _ordered_by(sequencer):
            ordered += sum(batch.count for batch in batches)
        assert ordered == 1 + 65_536 - 3 * 4_096  # the lowest class leaves three reserves


class TestFrames:
    def test_a_turn_ends_after_some_frames_and_requests_another(self) -> None:
        member = _member(B, submit_max=10_000)
        say_frames(member, 20)
        frames = []
        while (outputs := turn(member))[-1:] == [MoreToDo()]:
            assert len(outputs) == 9
            frames += outputs[:-1]
        frames += outputs
        assert len(frames) == 20
        assert {output.to for output in frames if isinstance(output, Send)} == {A}

    def test_the_sequencer_requests_another_turn_as_well(self) -> None:
        sequencer = _member(A, window=1_000)
        for number in range(9):
            hear(sequencer, B, Submit((batch_of(1, first=number, sender=B, size=BATCH_BYTES_CUT),)))
        outputs = turn(sequencer)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        assert len(_ordered_by(sequencer)) == 1

    def test_a_full_link_to_one_member_stops_the_order_for_all(self) -> None:
        sequencer = _member(A)
        hear(sequencer, B, Submit((batch_of(1, sender=B),)))
        sequencer.step(LinkBlocked(C), now=0)
        assert not _ordered_by(sequencer)
        assert sequencer.backlog == 1


class TestViews:
    def test_the_first_message_has_the_position_of_the_view(self) -> None:
        sequencer, member = _member(A, position=40), _member(B, position=40)
        hear(sequencer, B, Submit((batch_of(2, sender=B),)))
        hear(sequencer, C, Submit((batch_of(1, sender=C),)))
        (output,) = [output for output in turn(sequencer) if isinstance(output, SendAll)]
        assert isinstance(output.packet, Ordered)
        assert output.packet.position == 40
        say(member, batch_of(2, sender=B))
        turn(member)
        hear(member, A, output.packet)
        assert [ordered_batch.position for ordered_batch in member.unconsumed()] == [40, 42]
        assert member.position_next == 43

    def test_only_packets_that_decide_the_order_are_for_all(self) -> None:
        assert [packet.TO_ALL for packet in SequencerUb.PACKETS] == [False, True, False]
        assert SequencerUb.orderer(VIEW) == A

    def test_a_sender_keeps_submitted_messages_until_they_are_ordered(self) -> None:
        member = _member(B, submit_max=2)
        say(member, batch_of(3, 5, sender=B))
        say(member, batch_of(1, 9, sender=B))
        turn(member)
        hear(member, A, Ordered(0, (batch_of(1, 9, sender=B),)))
        assert [str(batch) for batch in member.unordered()] == ["b#1/5/0+1", "b#1/5/1+2"]
        assert [str(ordered_batch.batch) for ordered_batch in member.unconsumed()] == ["b#1/9/0+1"]

    def test_the_sequencer_does_not_keep_what_others_submitted(self) -> None:
        sequencer = _member(A)
        hear(sequencer, B, Submit((batch_of(3, sender=B),)))
        assert sequencer.unordered() == []


class TestTheBottleneck:
    def test_there_is_none_while_there_is_room_or_nothing_to_order(self) -> None:
        sequencer = _member(A, window=2)
        assert sequencer.inspect(0).bottleneck is None
        hear(sequencer, B, Submit((batch_of(1, sender=B),)))
        assert sequencer.inspect(0).bottleneck is None

    def test_the_member_that_has_granted_least(self) -> None:
        sequencer = _member(A, window=2)
        hear(sequencer, B, Submit((batch_of(5, sender=B),)))
        _ordered_by(sequencer)
        for member in (A, B):
            hear(sequencer, member, Consumed(2, 2))
        assert sequencer.inspect(0).bottleneck == C
        hear(sequencer, C, Consumed(1, 2))
        assert sequencer.inspect(0).bottleneck is None
        (batch,) = _ordered_by(sequencer)
        assert (batch.first, batch.count) == (2, 1)
        assert sequencer.inspect(0).bottleneck == C

    def test_the_member_that_has_consumed_least_if_bytes_are_short(self) -> None:
        sequencer = _member(A, window=100, window_bytes=10)
        hear(sequencer, B, Submit((batch_of(1, sender=B), batch_of(1, 7, sender=B))))
        _ordered_by(sequencer)
        for member in (A, C):
            hear(sequencer, member, Consumed(1, 100))
        assert sequencer.inspect(0).bottleneck == B

    def test_ordered_packets_name_the_bottleneck(self) -> None:
        sequencer = _member(A, window=2)
        hear(sequencer, B, Submit((batch_of(5, sender=B),)))
        (output,) = [output for output in turn(sequencer) if isinstance(output, SendAll)]
        assert isinstance(output.packet, Ordered)
        assert output.packet.bottleneck == "a"

    def test_queues_are_inspected_where_messages_wait(self) -> None:
        sequencer, member = _member(A), _member(B, submit_max=1)
        hear(sequencer, B, Submit((batch_of(3, 7, sender=B),)))
        assert sequencer.inspect(now=9).queues == [(7, 3, 9)]
        say(member, batch_of(3, 7, sender=B), now=4)
        turn(member, now=5)
        assert member.inspect(now=9).queues == [(7, 2, 5)]


def test_a_member_is_idle_when_all_its_messages_are_ordered() -> None:
    member = _member(B)
    assert member.idle
    say(member, batch_of(1, sender=B))
    assert not member.idle
    turn(member)
    assert not member.idle
    hear(member, A, Ordered(0, (batch_of(1, sender=B),)))
    assert member.idle


def test_the_sequencer_is_settled_when_its_own_messages_are_ordered_and_idle_when_all_are() -> None:
    sequencer = _member(A, window=1)
    hear(sequencer, B, Submit((batch_of(2, sender=B),)))
    assert (sequencer.settled, sequencer.idle) == (True, False)
    say(sequencer, batch_of(1))
    assert not sequencer.settled
    turn(sequencer)
    assert not sequencer.settled
