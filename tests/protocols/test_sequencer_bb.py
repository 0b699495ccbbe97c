"""The fixed sequencer that broadcasts references: what waits for what.

What it does when everybody behaves is in `scripts/bb-*` and in the property suite.
"""

from functools import partial

import pytest

from core.builders import A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.message import Reference, reference_to
from priocast.core.protocol import Consume, LinkBlocked, MoreToDo, Send, SendAll
from priocast.protocols.flow.packets import Consumed, Data, Order
from priocast.protocols.sequencer.bb import SequencerBb
from protocols.single_member import VIEW, hear, member_of, packets, placed, say, say_frames, turn

_member = partial(member_of, SequencerBb)
_hear = partial(hear, packet_id=(0, 1))


class TestPositions:
    def test_messages_wait_for_positions_and_positions_for_messages(self) -> None:
        member = _member(B)
        early, late = batch_of(2, 5, sender=A), batch_of(1, 9, sender=C)
        _hear(member, A, Data((early,)))
        assert placed(member) == []
        _hear(member, A, Order(0, (Reference(A, 5, 0, 1), reference_to(late), Reference(A, 5, 1, 1))))
        assert placed(member) == ["a#1/5/0+1"]
        assert member.position_next == 1
        _hear(member, C, Data((late,)))
        assert placed(member) == ["a#1/5/0+1", "c#1/9/0+1", "a#1/5/1+1"]
        assert [ordered_batch.position for ordered_batch in member.unconsumed()] == [0, 1, 2]

    def test_a_reference_may_need_several_packets(self) -> None:
        member = _member(B)
        _hear(member, A, Order(0, (Reference(C, 5, 0, 3),)))
        _hear(member, C, Data((batch_of(2, 5, sender=C),)))
        assert placed(member) == []
        _hear(member, C, Data((batch_of(2, 5, sender=C, first=2),)))
        assert sum(ordered_batch.batch.count for ordered_batch in member.unconsumed()) == 3

    @pytest.mark.parametrize("order_first", [True, False])
    def test_a_position_depends_on_the_order_and_on_all_data_up_to_it(self, order_first: bool) -> None:
        """The same packets give the same dependencies, in whatever order they arrive."""
        member = _member(B)
        of_c, of_b = batch_of(1, 9, sender=C), batch_of(1, 1, sender=C)
        order = Order(0, (reference_to(of_c), reference_to(of_b)))
        if order_first:
            _hear(member, A, order, packet_id=(0, 7))
        _hear(member, C, Data((of_c,)), packet_id=(2, 3))
        _hear(member, C, Data((of_b,)), packet_id=(2, 4))
        if not order_first:
            _hear(member, A, order, packet_id=(0, 7))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(7, 0, 3), (7, 0, 4)]

    def test_the_first_message_has_the_position_of_the_view(self) -> None:
        sequencer = _member(A, position=40)
        _hear(sequencer, B, Data((batch_of(2, sender=B),)))
        (order,) = packets(turn(sequencer), Order)
        assert order == Order(40, (Reference(B, 0, 0, 2),))
        _hear(sequencer, A, order)
        assert sequencer.position_next == 42


class TestTheEndOfAView:
    def test_a_position_whose_message_is_lost_ends_the_order(self) -> None:
        """Messages with later positions are sent again by their senders."""
        member = _member(B)
        for batch in (batch_of(2, 5, sender=B), batch_of(1, 9, sender=B)):
            say(member, batch)
        for data in packets(turn(member), Data):
            _hear(member, B, data)
        _hear(member, A, Order(0, (Reference(B, 9, 0, 1), Reference(C, 0, 0, 1), Reference(B, 5, 0, 2))))
        member.close()
        assert placed(member) == ["b#1/9/0+1"]
        assert member.position_next == 1
        assert [str(batch) for batch in member.unordered()] == ["b#1/5/0+2"]

    def test_the_sequencer_does_not_keep_what_others_sent(self) -> None:
        sequencer = _member(A)
        _hear(sequencer, B, Data((batch_of(3, sender=B),)))
        assert sequencer.unordered() == []

    def test_messages_and_positions_are_for_all_and_reports_are_not(self) -> None:
        assert [packet.TO_ALL for packet in SequencerBb.PACKETS] == [True, True, False]
        assert SequencerBb.orderer(VIEW) == A


class TestSending:
    def test_a_sender_has_no_more_in_flight_than_its_credit(self) -> None:
        member = _member(B, submit_max=2)
        say(member, batch_of(3, 5, sender=B))
        say(member, batch_of(1, 9, sender=B))
        (data,) = packets(turn(member), Data)
        assert [str(batch) for batch in data.messages] == ["b#1/9/0+1", "b#1/5/0+1"]
        assert packets(turn(member), Data) == []
        assert member.backlog == 2
        _hear(member, B, data)
        _hear(member, A, Order(0, (Reference(B, 9, 0, 1),)))
        (data,) = packets(turn(member), Data)
        assert [str(batch) for batch in data.messages] == ["b#1/5/1+1"]

    @pytest.mark.parametrize("me", [A, B])
    def test_nothing_is_sent_while_a_link_is_full(self, me: ProcessId) -> None:
        member = _member(me)
        say(member, batch_of(1, sender=me))
        _hear(member, C, Data((batch_of(1, sender=C),)))
        member.step(LinkBlocked(C), now=0)
        assert turn(member) == []

    def test_a_turn_ends_after_some_frames_and_requests_another(self) -> None:
        member = _member(B)
        say_frames(member, 9)
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        assert len(packets(turn(member), Data)) == 1

    def test_a_destination_reports_to_the_sequencer(self) -> None:
        member = _member(B, window=4)
        _hear(member, C, Data((batch_of(2, sender=C),)))
        _hear(member, A, Order(0, (Reference(C, 0, 0, 2),)))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 4))]


class TestTheSequencer:
    def test_it_orders_by_priority_within_the_window(self) -> None:
        sequencer = _member(A, window=2)
        _hear(sequencer, B, Data((batch_of(2, 5, sender=B),)))
        _hear(sequencer, C, Data((batch_of(1, 9, sender=C),)))
        assert packets(turn(sequencer), Order) == [
            Order(0, (Reference(C, 9, 0, 1), Reference(B, 5, 0, 1)), "a")
        ]
        assert packets(turn(sequencer), Order) == []
        assert (sequencer.backlog, sequencer.inspect(now=6).queues, sequencer.idle) == (1, [(5, 1, 6)], False)
        assert sequencer.settled

    def test_its_bottleneck_is_the_member_that_has_granted_least(self) -> None:
        sequencer = _member(A, window=1)
        assert sequencer.inspect(0).bottleneck is None
        _hear(sequencer, B, Data((batch_of(2, 5, sender=B),)))
        (order,) = packets(turn(sequencer), Order)
        _hear(sequencer, A, order)
        for member in (A, C):
            _hear(sequencer, member, Consumed(1, 1))
        assert sequencer.inspect(0).bottleneck == B

    def test_the_window_is_in_bytes_as_well(self) -> None:
        sequencer = _member(A, window=100, window_bytes=10)
        _hear(sequencer, B, Data((batch_of(1, 5, sender=B), batch_of(1, 6, sender=B))))
        assert packets(turn(sequencer), Order) == [Order(0, (Reference(B, 6, 0, 1),), "a")]

    def test_others_do_not_order(self) -> None:
        member = _member(B)
        _hear(member, C, Data((batch_of(1, sender=C),)))
        assert packets(turn(member), Order) == []
        assert (member.backlog, member.idle, member.inspect(0).bottleneck) == (0, True, None)


def test_a_member_is_idle_when_all_its_messages_are_ordered() -> None:
    member = _member(B)
    say(member, batch_of(1, sender=B))
    assert not member.idle
    (data,) = packets(turn(member), Data)
    _hear(member, B, data)
    assert not member.idle
    assert not member.settled
    _hear(member, A, Order(0, (Reference(B, 0, 0, 1),)))
    assert member.idle
