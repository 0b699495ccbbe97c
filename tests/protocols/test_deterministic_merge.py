"""Deterministic merge: rounds, the slots of idle members, and the pace.

What it does when all members are correct is in `scripts/` and in the property suite.
"""

from functools import partial

from core.builders import A, B, C, batch_of
from priocast.core.protocol import Consume, LinkBlocked, LinkCleared, Packet, Send, SendAll
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.history.merge import DeterministicMerge
from priocast.protocols.history.merge_packets import SkippedSlots, Slot
from protocols.single_member import VIEW, hear, member_of, placed_at, say, turn_heard

_member = partial(member_of, DeterministicMerge)


def _say(member: DeterministicMerge, count: int, level: int = 0, first: int = 0) -> None:
    say(member, batch_of(count, level, first, sender=member.me))


def _turn(member: DeterministicMerge) -> list[str]:
    """What a member sends to all in a turn, and receives itself."""
    return [_text(output.packet) for output in turn_heard(member) if isinstance(output, SendAll)]


def _text(packet: Packet) -> str:
    match packet:
        case Slot(round=round_, batches=batches):
            return f"{round_}: {' '.join(map(str, batches))}"
        case SkippedSlots(round=round_, count=count):
            return f"{round_}: nothing" if count == 1 else f"{round_} to {round_ + count - 1}: nothing"
    raise AssertionError(packet)


class TestTheMerge:
    def test_a_slot_waits_for_all_slots_before_it(self) -> None:
        member = _member(A, position=40)
        hear(member, C, Slot(0, (batch_of(1, sender=C),)))
        hear(member, C, Slot(1, (batch_of(1, first=1, sender=C),)))
        hear(member, B, Slot(0, (batch_of(2, sender=B),)))
        assert placed_at(member) == []
        assert _turn(member) == ["0 to 1: nothing"]
        assert placed_at(member) == ["40: b#1/0/0+2", "42: c#1/0/0+1"]
        hear(member, B, SkippedSlots(1, 1))
        assert placed_at(member) == ["40: b#1/0/0+2", "42: c#1/0/0+1", "43: c#1/0/1+1"]

    def test_a_position_depends_on_all_slots_up_to_there(self) -> None:
        member = _member(C)
        for number, (sender, packet) in enumerate(
            [
                (A, Slot(0, (batch_of(1),))),
                (B, SkippedSlots(0, 2)),
                (A, SkippedSlots(1, 1)),
                (A, Slot(2, (batch_of(1, first=1),))),
            ]
        ):
            hear(member, sender, packet, packet_id=(VIEW.members.index(sender), number + 1))
        hear(member, C, SkippedSlots(0, 2), packet_id=(2, 7))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(1, 0, 0), (4, 2, 7)]


class TestSkippedSlots:
    def test_a_member_skips_its_slots_up_to_the_round_that_others_have_reached(self) -> None:
        member = _member(B)
        assert _turn(member) == []
        hear(member, C, Slot(0, (batch_of(1, sender=C),)))
        hear(member, C, SkippedSlots(1, 2))
        hear(member, C, Slot(3, (batch_of(1, first=1, sender=C),)))
        assert not member.idle
        assert _turn(member) == ["0 to 3: nothing"]
        assert member.idle
        assert _turn(member) == []

    def test_skipped_slots_cause_no_skipped_slots(self) -> None:
        member = _member(B)
        for sender in (A, C):
            hear(member, sender, SkippedSlots(0, 5))
        assert member.idle
        assert _turn(member) == []

    def test_messages_fill_slots_first(self) -> None:
        member = _member(B)
        _say(member, 1)
        for round_ in range(3):
            hear(member, A, Slot(round_, (batch_of(1, first=round_),)))
        assert _turn(member) == ["0: b#1/0/0+1", "1 to 2: nothing"]

    def test_a_member_without_room_for_its_messages_skips_its_slots(self) -> None:
        member = _member(B, window=3)
        _say(member, 2)
        assert _turn(member) == ["0: b#1/0/0+1"]
        hear(member, A, Slot(0, (batch_of(1),)))
        hear(member, A, Slot(1, (batch_of(1, first=1),)))
        assert _turn(member) == ["1: nothing"]
        assert member.backlog == 1

    def test_a_paced_member_keeps_its_slots_for_its_messages(self) -> None:
        member = _member(B, window=100)
        for number in range(3):
            _say(member, 1, first=number)
            _turn(member)
        for sender in (A, C):
            for round_ in range(3):
                hear(member, sender, Slot(round_, (batch_of(1, first=round_, sender=sender),)))
            if sender == A:
                assert _turn(member) == ["2: b#1/0/2+1"], "its slot of round 0 was merged"

    def test_a_packet_skips_a_limited_number_of_slots(self) -> None:
        member = _member(B)
        for _ in range(2):
            hear(member, A, SkippedSlots(member._round_next[A], 1_024))
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
        hear(member, A, SkippedSlots(0, 1))
        assert _turn(member) == ["2: b#1/0/6+2"]

    def test_an_urgent_message_waits_for_two_slots_at_most(self) -> None:
        member = _member(B, window=100)
        for number in range(20):
            _say(member, 1, first=number)
            _turn(member)
        _say(member, 1, level=9)
        assert _turn(member) == []
        for sender in (A, C):
            hear(member, sender, SkippedSlots(0, 2))
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
    def test_a_sender_gets_reports_about_its_messages(self) -> None:
        member = _member(B, window=12)
        hear(member, A, Slot(0, (batch_of(2),)))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 4))]

    def test_a_bottleneck_has_something_to_consume(self) -> None:
        member = _member(B, window=3)
        _say(member, 2)
        _turn(member)
        assert member.inspect(0).bottleneck is None, "the message is not ordered"
        hear(member, A, SkippedSlots(0, 1))
        assert member.inspect(0).bottleneck == A
        for each in (A, B, C):
            hear(member, each, Consumed(1, 1))
        assert member.inspect(0).bottleneck is None


class TestTheEndOfAView:
    def test_what_is_not_merged_is_not_ordered(self) -> None:
        member = _member(B)
        _say(member, 2, level=4)
        _turn(member)
        hear(member, C, Slot(0, (batch_of(1, sender=C),)))
        member.close()
        assert placed_at(member) == []
        assert [str(batch) for batch in member.unordered()] == ["b#1/4/0+2"]

    def test_what_decides_the_order_is_sent_to_all(self) -> None:
        assert {packet.name() for packet in DeterministicMerge.PACKETS if packet.TO_ALL} == {
            "slot",
            "skipped-slots",
        }
        assert DeterministicMerge.orderer(VIEW) is None
