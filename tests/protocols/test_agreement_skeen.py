"""Skeen's agreement: proposals, final timestamps, and when a frame can be ordered.

What it does when all members are correct is in `scripts/` and in the property suite.
"""

from functools import partial

from core.builders import A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.protocol import (
    Consume,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    Packet,
    PacketId,
    Send,
    SendAll,
)
from priocast.protocols.agreement.skeen import AgreementSkeen
from priocast.protocols.agreement.skeen_packets import FinalTimestamps, ProposedTimestamps
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.packets import Consumed
from protocols.single_member import VIEW, hear, member_of, placed_at, say, say_frames, turn_heard

_member = partial(member_of, AgreementSkeen)


def _hear(member: AgreementSkeen, sender: ProcessId, packet: Packet, packet_id: PacketId = (0, 0)) -> None:
    assert hear(member, sender, packet, packet_id) == []


def _data(sender: ProcessId, number: int, count: int = 1) -> NumberedData:
    return NumberedData(number, (batch_of(count, first=number * count, sender=sender),))


class TestTheSender:
    def test_the_highest_proposal_is_final_when_all_have_arrived(self) -> None:
        member = _member(A)
        say(member, batch_of(1))
        assert turn_heard(member) == [SendAll(NumberedData(0, (batch_of(1),)))]
        assert turn_heard(member) == [Send(A, ProposedTimestamps(0, (1,)))]
        _hear(member, B, ProposedTimestamps(0, (7,)))
        assert turn_heard(member) == []
        _hear(member, C, ProposedTimestamps(0, (4,)))
        assert turn_heard(member) == [SendAll(FinalTimestamps(0, (7,)))]
        assert placed_at(member) == ["0: a#1/0/0+1"]
        assert member.idle

    def test_one_packet_decides_on_many_frames(self) -> None:
        member = _member(A, window=100)
        for number in range(3):
            say(member, batch_of(1, first=number))
            turn_heard(member)
        turn_heard(member)
        for peer in (B, C):
            _hear(member, peer, ProposedTimestamps(0, (5, 6)))
        assert turn_heard(member) == [SendAll(FinalTimestamps(0, (5, 6)))]
        for peer in (B, C):
            _hear(member, peer, ProposedTimestamps(2, (9,)))
        assert turn_heard(member) == [SendAll(FinalTimestamps(2, (9,)))]

    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(A, window=100)
        say_frames(member, 9)
        assert [type(output) for output in turn_heard(member)] == [SendAll] * 8 + [MoreToDo]

    def test_a_sender_has_no_more_in_flight_than_its_share_of_the_window(self) -> None:
        member = _member(A, window=6)
        say(member, batch_of(5, level=3))
        turn_heard(member)
        say(member, batch_of(1, level=9))
        assert member.backlog == 4
        assert member.inspect(now=5).queues == [(9, 1, 5), (3, 3, 5)]
        turn_heard(member)
        assert member.inspect(0).bottleneck is None, "the frame is not ordered: the consumers are not slow"
        for peer in (B, C):
            _hear(member, peer, ProposedTimestamps(0, (1,)))
        turn_heard(member)
        assert member.inspect(0).bottleneck == A
        for peer in (A, B, C):
            _hear(member, peer, Consumed(2, 2))
        assert turn_heard(member) == [
            SendAll(NumberedData(1, (batch_of(1, level=9), batch_of(1, level=3, first=2)), "a"))
        ]


class TestTheDestination:
    def test_proposals_rise_and_each_sender_gets_one_packet(self) -> None:
        member = _member(B)
        _hear(member, A, _data(A, 0))
        _hear(member, C, _data(C, 0))
        _hear(member, A, _data(A, 1))
        assert not member.idle
        assert turn_heard(member) == [
            Send(A, ProposedTimestamps(0, (1, 3))),
            Send(C, ProposedTimestamps(0, (2,))),
        ]
        assert member.idle

    def test_a_full_link_delays_its_proposals_and_what_is_sent_to_all(self) -> None:
        member = _member(B)
        say(member, batch_of(1, sender=B))
        _hear(member, A, _data(A, 0))
        _hear(member, C, _data(C, 0))
        member.step(LinkBlocked(A), now=0)
        assert turn_heard(member) == [Send(C, ProposedTimestamps(0, (2,)))]
        member.step(LinkCleared(A), now=0)
        assert turn_heard(member) == [Send(A, ProposedTimestamps(0, (1,))), SendAll(_data(B, 0))]

    def test_a_frame_is_ordered_when_no_other_one_can_precede_it(self) -> None:
        member = _member(B, position=40)
        _hear(member, A, _data(A, 0))
        _hear(member, C, _data(C, 0))
        _hear(member, C, FinalTimestamps(0, (2,)))
        assert placed_at(member) == [], "a's frame may get 1 or 2"
        _hear(member, A, FinalTimestamps(0, (2,)))
        assert placed_at(member) == ["40: a#1/0/0+1", "41: c#1/0/0+1"], "equal timestamps: by rank"

    def test_what_can_only_come_later_does_not_delay_a_frame(self) -> None:
        member = _member(B)
        _hear(member, A, _data(A, 0))
        _hear(member, A, _data(A, 1))
        _hear(member, C, _data(C, 0))
        _hear(member, A, FinalTimestamps(0, (8,)))
        assert placed_at(member) == []
        _hear(member, C, FinalTimestamps(0, (5,)))
        assert placed_at(member) == ["0: c#1/0/0+1", "1: a#1/0/0+1"], "a's next frame gets more than 8"

    def test_the_clock_follows_a_final_timestamp(self) -> None:
        member = _member(B)
        _hear(member, A, _data(A, 0))
        _hear(member, A, FinalTimestamps(0, (8,)))
        _hear(member, C, _data(C, 0))
        assert turn_heard(member)[-1] == Send(C, ProposedTimestamps(0, (9,)))

    def test_a_position_depends_on_the_packets_with_the_final_timestamps(self) -> None:
        member = _member(B)
        for packet_id, (sender, packet) in {
            (0, 1): (A, _data(A, 0)),
            (2, 1): (C, _data(C, 0)),
            (2, 2): (C, FinalTimestamps(0, (3,))),
            (0, 2): (A, FinalTimestamps(0, (1,))),
        }.items():
            _hear(member, sender, packet, packet_id=packet_id)
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(2, 0, 0), (2, 0, 2)]

    def test_a_sender_gets_reports_about_its_messages(self) -> None:
        member = _member(B, window=12)
        _hear(member, A, _data(A, 0))
        _hear(member, A, FinalTimestamps(0, (1,)))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 4))]


class TestTheEndOfAView:
    def test_frames_with_final_timestamps_are_ordered_and_the_rest_goes_back(self) -> None:
        member = _member(B)
        say(member, batch_of(1, level=4, sender=B))
        turn_heard(member)
        _hear(member, A, _data(A, 0))
        _hear(member, C, _data(C, 0))
        _hear(member, C, _data(C, 1))
        _hear(member, C, FinalTimestamps(0, (9,)))
        assert placed_at(member) == []
        member.close()
        assert placed_at(member) == ["0: c#1/0/0+1"]
        assert [str(batch) for batch in member.unordered()] == ["b#1/4/0+1"]

    def test_what_decides_the_order_is_sent_to_all(self) -> None:
        assert {packet.name() for packet in AgreementSkeen.PACKETS if packet.TO_ALL} == {
            "data",
            "final-timestamps",
        }
        assert not AgreementSkeen.PARTITIONABLE
        assert AgreementSkeen.orderer(VIEW) is None
