"""Deterministic merge: rounds, the slots of those who have nothing to send, the pace, and what is refused.

What it does when everybody behaves is in `scripts/` and in the property suite.
"""

from functools import partial

import msgspec
import pytest

from core.builders import A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.protocol import Consume, LinkBlocked, LinkCleared, Packet, Send, SendAll
from priocast.protocols.flow.grants import Consumed
from priocast.protocols.history.merge import DeterministicMerge, Skip, Slot
from protocols.single_member import VIEW, hear, member_of, placed_at, say, turn_heard

_member = partial(member_of, DeterministicMerge)


def _say(member: DeterministicMerge, count: int, level: int = 0, first: int = 0) -> None:
    say(member, batch_of(count, level, first, sender=member.me))


def _turn(member: DeterministicMerge) -> list[str]:
    """What a member sends to all in a turn; it hears itself, as its driver sees to that."""
    return [_text(output.packet) for output in turn_heard(member) if isinstance(output, SendAll)]


def _text(packet: Packet) -> str:
    match packet:
        case Slot(round=round_, batches=batches):
            return f"{round_}: {' '.join(map(str, batches))}"
        case Skip(round=round_, count=count):
            return f"{round_}: nothing" if count == 1 else f"{round_} to {round_ + count - 1}: nothing"
    raise AssertionError(packet)


class TestTheMerge:
    def test_a_slot_waits_for_those_before_it_in_its_round_and_in_earlier_rounds(self) -> None:
        member = _member(A, position=40)
        hear(member, C, Slot(0, (batch_of(1, sender=C),)))
        hear(member, C, Slot(1, (batch_of(1, first=1, sender=C),)))
        hear(member, B, Slot(0, (batch_of(2, sender=B),)))
        assert placed_at(member) == []
        assert _turn(member) == ["0 to 1: nothing"]
        assert placed_at(member) == ["40: b#1/0/0+2", "42: c#1/0/0+1"]
        hear(member, B, Skip(1, 1))
        assert placed_at(member) == ["40: b#1/0/0+2", "42: c#1/0/0+1", "43: c#1/0/1+1"]

    def test_the_evidence_of_a_place_are_all_slots_up_to_there(self) -> None:
        member = _member(C)
        for number, (sender, packet) in enumerate(
            [
                (A, Slot(0, (batch_of(1),))),
                (B, Skip(0, 2)),
                (A, Skip(1, 1)),
                (A, Slot(2, (batch_of(1, first=1),))),
            ]
        ):
            hear(member, sender, packet, packet_id=(VIEW.members.index(sender), number + 1))
        hear(member, C, Skip(0, 2), packet_id=(2, 7))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(1, 0, 0), (4, 2, 7)]


class TestSlotsWithNothing:
    def test_a_member_fills_its_slots_up_to_the_round_that_others_have_reached(self) -> None:
        member = _member(B)
        assert _turn(member) == []
        hear(member, C, Slot(0, (batch_of(1, sender=C),)))
        hear(member, C, Skip(1, 2))
        hear(member, C, Slot(3, (batch_of(1, first=1, sender=C),)))
        assert not member.idle
        assert _turn(member) == ["0 to 3: nothing"]
        assert member.idle
        assert _turn(member) == []

    def test_what_fills_a_slot_is_no_reason_to_fill_one(self) -> None:
        member = _member(B)
        for sender in (A, C):
            hear(member, sender, Skip(0, 5))
        assert member.idle
        assert _turn(member) == []

    def test_messages_fill_slots_first(self) -> None:
        member = _member(B)
        _say(member, 1)
        for round_ in range(3):
            hear(member, A, Slot(round_, (batch_of(1, first=round_),)))
        assert _turn(member) == ["0: b#1/0/0+1", "1 to 2: nothing"]

    def test_who_has_no_room_for_its_messages_fills_its_slots_as_well(self) -> None:
        member = _member(B, window=3)
        _say(member, 2)
        assert _turn(member) == ["0: b#1/0/0+1"]
        hear(member, A, Slot(0, (batch_of(1),)))
        hear(member, A, Slot(1, (batch_of(1, first=1),)))
        assert _turn(member) == ["1: nothing"]
        assert member.backlog == 1

    def test_who_only_waits_for_its_pace_keeps_its_slots_for_its_messages(self) -> None:
        member = _member(B, window=100)
        for number in range(3):
            _say(member, 1, first=number)
            _turn(member)
        for sender in (A, C):
            for round_ in range(3):
                hear(member, sender, Slot(round_, (batch_of(1, first=round_, sender=sender),)))
            if sender == A:
                assert _turn(member) == ["2: b#1/0/2+1"], "its slot of round 0 was merged"

    def test_as_many_slots_at_once_as_a_packet_may_fill(self) -> None:
        member = _member(B)
        for _ in range(2):
            hear(member, A, Skip(member._round_next[A], 1_024))
        hear(member, A, Slot(2_048, (batch_of(1),)))
        assert _turn(member) == ["0 to 1023: nothing"]
        assert _turn(member) == ["1024 to 2047: nothing"]
        assert _turn(member) == ["2048: nothing"]


class TestThePace:
    def test_no_more_than_two_slots_are_unmerged(self) -> None:
        member = _member(B, window=100)
        for number in range(5):
            _say(member, 1, first=number)
        assert _turn(member) == ["0: b#1/0/0+5"], "what is there at once goes into one slot"
        for number in range(5, 8):
            _say(member, 1, first=number)
            _turn(member)
        assert member.backlog == 2
        hear(member, A, Skip(0, 1))
        assert _turn(member) == ["2: b#1/0/6+2"]

    def test_what_is_urgent_waits_for_two_slots_at_most(self) -> None:
        member = _member(B, window=100)
        for number in range(20):
            _say(member, 1, first=number)
            _turn(member)
        _say(member, 1, level=9)
        assert _turn(member) == []
        for sender in (A, C):
            hear(member, sender, Skip(0, 2))
        (slot,) = _turn(member)
        assert slot.startswith("2: b#1/9/0+1 b#1/0/2+")

    def test_a_full_link_keeps_a_member_from_sending(self) -> None:
        member = _member(B)
        _say(member, 1)
        hear(member, A, Slot(0, (batch_of(1),)))
        hear(member, A, Slot(1, (batch_of(1, first=1),)))
        member.step(LinkBlocked(C), now=0)
        assert _turn(member) == []
        member.step(LinkCleared(C), now=0)
        assert _turn(member) == ["0: b#1/0/0+1", "1: nothing"]


class TestTheWindow:
    def test_a_sender_is_told_what_was_consumed_of_its_messages(self) -> None:
        member = _member(B, window=12)
        hear(member, A, Slot(0, (batch_of(2),)))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 4))]

    def test_a_sender_waits_for_a_member_only_if_that_one_has_something_to_consume(self) -> None:
        member = _member(B, window=3)
        _say(member, 2)
        _turn(member)
        assert member.bottleneck() is None, "the message has no place"
        hear(member, A, Skip(0, 1))
        assert member.bottleneck() == A
        for each in (A, B, C):
            hear(member, each, Consumed(1, 1))
        assert member.bottleneck() is None

    def test_more_consumed_than_was_sent(self) -> None:
        with pytest.raises(PeerFault, match="a#1 reports 1 messages consumed, which cannot be"):
            hear(_member(B), A, Consumed(1, 1))


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "packet", [Slot(0, (batch_of(1, first=1),)), Slot(2, (batch_of(1, first=1),)), Skip(0, 1)]
    )
    def test_a_slot_that_is_filled_or_leaves_a_gap(self, packet: Slot | Skip) -> None:
        member = _member(B)
        hear(member, A, Slot(0, (batch_of(1),)))
        with pytest.raises(PeerFault, match=f"a#1 fills a slot of round {packet.round}; round 1 is next"):
            hear(member, A, packet)

    def test_messages_of_somebody_else(self) -> None:
        with pytest.raises(PeerFault, match="a#1 submits a message of c#1"):
            hear(_member(B), A, Slot(0, (batch_of(1, sender=C),)))

    @pytest.mark.parametrize("packet", [Skip(0, 0), Skip(0, 1_025), Skip(-1, 1), Slot(0, ())])
    def test_packets_that_cannot_be(self, packet: Packet) -> None:
        body = msgspec.msgpack.encode(packet)
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(body, type=Slot | Skip)


class TestTheEndOfAView:
    def test_what_is_not_merged_has_no_place(self) -> None:
        member = _member(B)
        _say(member, 2, level=4)
        _turn(member)
        hear(member, C, Slot(0, (batch_of(1, sender=C),)))
        member.close()
        assert placed_at(member) == []
        assert [str(batch) for batch in member.unordered()] == ["b#1/4/0+2"]

    def test_what_decides_about_the_order_is_for_all_and_the_rest_is_not(self) -> None:
        assert {packet.name() for packet in DeterministicMerge.PACKETS if packet.TO_ALL} == {"slot", "skip"}
        assert DeterministicMerge.orderer(VIEW) is None
