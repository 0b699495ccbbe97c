"""The fixed sequencer that gives out numbers: what it refuses, who asks for how much, and late binding.

What it does when everybody behaves is in `scripts/uub-*` and in the property suite.
"""

from collections import deque
from functools import partial

import pytest
from hypothesis import given, settings

from core.builders import A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import (
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    OrderingOptions,
    Output,
    Packet,
    Send,
    SendAll,
)
from priocast.core.starvation import Starvation
from priocast.protocols.flow.grants import Consumed
from priocast.protocols.numbering.base import Ask, Grant
from priocast.protocols.numbering.requests import Want
from priocast.protocols.sequencer.uub import Numbered, SequencerUub
from protocols import harness
from protocols.orders import TWINS
from protocols.schedules import Case, cases, play
from protocols.single_member import VIEW, hear, member_of, placed, say, say_frames, turn

_member = partial(member_of, SequencerUub)
_hear = partial(hear, packet_id=(0, 1))


def _asking(member: SequencerUub, *batches: tuple[int, int]) -> list[Output]:
    """Let a member broadcast so many messages of these levels, and have a turn."""
    for count, level in batches:
        first = member.outgoing.count if level == 0 else 0
        say(member, batch_of(count, level, first, sender=member.me))
    return turn(member)


def _wants(*counts: tuple[int, int]) -> Ask:
    """An ask for so many messages of these levels, of ten bytes each."""
    return Ask(tuple(Want(level, count, 10 * count) for count, level in counts))


class TestWhatIsRefused:
    @pytest.mark.parametrize("packet", [_wants((1, 0)), Consumed(0, 5)], ids=["ask", "report"])
    def test_who_takes_another_member_for_the_sequencer(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="c#1 takes b#1 for the sequencer, which is a#1"):
            _hear(_member(B), C, packet)

    def test_an_ask_beyond_the_credit(self) -> None:
        sequencer = _member(A, submit_max=4, window=1)
        _hear(sequencer, C, _wants((4, 5)))
        assert turn(sequencer) == [Send(C, Grant(0, 1, "a"))]
        _hear(sequencer, C, _wants((1, 9)))
        with pytest.raises(PeerFault, match="c#1 asks for more than the 4 numbers that it has credit for"):
            _hear(sequencer, C, _wants((1, 9)))

    @pytest.mark.parametrize(
        ("sender", "grant"),
        [(C, Grant(40, 1)), (A, Grant(39, 1)), (A, Grant(40, 4))],
        ids=["of another member", "of a number that is used", "of more than was asked for"],
    )
    def test_a_grant(self, sender: ProcessId, grant: Grant) -> None:
        member = _member(B, position=40)
        _asking(member, (3, 5))
        with pytest.raises(PeerFault, match=f"{sender} grants"):
            _hear(member, sender, grant)

    def test_grants_that_do_not_come_in_the_order_of_their_numbers(self) -> None:
        member = _member(B)
        _asking(member, (3, 5))
        _hear(member, A, Grant(5, 1))
        with pytest.raises(PeerFault, match="not before 6"):
            _hear(member, A, Grant(4, 1))

    @pytest.mark.parametrize("position", [0, 1])
    def test_a_number_that_was_used_before(self, position: int) -> None:
        member = _member(B)
        _hear(member, A, Numbered(0, (batch_of(2),)))
        with pytest.raises(PeerFault, match=f"c#1 uses number {position}, which was used before"):
            _hear(member, C, Numbered(position, (batch_of(1, sender=C),)))

    def test_a_number_that_was_used_and_waits_for_others(self) -> None:
        member = _member(B)
        _hear(member, A, Numbered(3, (batch_of(2),)))
        with pytest.raises(PeerFault, match="c#1 uses number 3, which was used before"):
            _hear(member, C, Numbered(3, (batch_of(1, sender=C),)))

    @pytest.mark.parametrize(
        ("sender", "position", "count"), [(C, 0, 1), (B, 1, 1), (B, 0, 3)], ids=["whose", "which", "how many"]
    )
    def test_numbers_that_were_not_granted(self, sender: ProcessId, position: int, count: int) -> None:
        sequencer = _member(A)
        _hear(sequencer, B, _wants((2, 0)))
        assert turn(sequencer) == [Send(B, Grant(0, 2))]
        with pytest.raises(
            PeerFault, match=f"{sender} uses numbers from {position} on, which it was not gran"
        ):
            _hear(sequencer, sender, Numbered(position, (batch_of(count, sender=sender),)))

    def test_a_forged_sender(self) -> None:
        with pytest.raises(PeerFault, match="c#1 submits a message of b#1"):
            _hear(_member(B), C, Numbered(0, (batch_of(1, sender=B),)))

    def test_equals_that_are_left_out(self) -> None:
        member = _member(B)
        _hear(member, C, Numbered(0, (batch_of(1, sender=C),)))
        with pytest.raises(PeerFault, match="where number 1 of that level is next"):
            _hear(member, C, Numbered(1, (batch_of(1, sender=C, first=2),)))

    def test_consumption_of_what_was_not_granted(self) -> None:
        with pytest.raises(PeerFault, match="b#1 reports 5 messages consumed, which cannot be"):
            _hear(_member(A), B, Consumed(5, 16))


class TestAsking:
    def test_for_all_that_is_new_by_level_once(self) -> None:
        member = _member(B)
        (output,) = _asking(member, (2, 5), (1, 9))
        assert isinstance(output, Send)
        assert output.to == A
        assert isinstance(output.packet, Ask)
        assert [(want.level, want.count) for want in output.packet.wants] == [(9, 1), (5, 2)]
        assert [want.size for want in output.packet.wants] == [len(batch_of(count).block) for count in (1, 2)]
        assert turn(member) == []

    def test_no_further_than_the_credit_the_most_urgent_first(self) -> None:
        member = _member(B, submit_max=2)
        (output,) = _asking(member, (2, 5), (1, 9))
        assert isinstance(output, Send)
        assert isinstance(output.packet, Ask)
        assert [(want.level, want.count) for want in output.packet.wants] == [(9, 1), (5, 1)]
        assert turn(member) == []
        _hear(member, A, Grant(0, 1))
        outputs = turn(member)
        assert [type(output.packet) for output in outputs if isinstance(output, Send)] == [Ask]
        assert member._asked == 2

    def test_the_credit_has_a_reserve_for_the_urgent(self) -> None:
        member = _member(B, submit_max=16)
        _asking(member, (16, 5))
        assert member._asked == 13
        _asking(member, (1, 255))
        assert member._asked == 14

    def test_a_plain_group_asks_for_one_level(self) -> None:
        member = SequencerUub(B, VIEW, OrderingOptions(prioritised=False))
        say(member, batch_of(2, sender=B).in_line())
        (output,) = turn(member)
        assert isinstance(output, Send)
        assert isinstance(output.packet, Ask)
        assert [(want.level, want.count) for want in output.packet.wants] == [(0, 2)]

    def test_not_over_a_full_link(self) -> None:
        member = _member(B)
        member.step(LinkBlocked(A), now=0)
        assert _asking(member, (2, 5)) == []
        member.step(LinkCleared(A), now=0)
        assert len(turn(member)) == 1


class TestBinding:
    def test_the_most_urgent_message_takes_a_number_that_was_asked_for_another_one(self) -> None:
        member = _member(B)
        _asking(member, (2, 5))
        _hear(member, A, Grant(7, 2))
        outputs = _asking(member, (1, 9))
        assert SendAll(Numbered(7, (batch_of(1, 9, sender=B), batch_of(1, 5, sender=B)))) in outputs
        assert member.outgoing.count == 1

    def test_numbers_are_bound_when_the_links_have_room_in_the_order_of_the_grants(self) -> None:
        member = _member(B)
        _asking(member, (2, 5))
        _hear(member, A, Grant(3, 1, "c"))
        _hear(member, A, Grant(6, 1))
        member.step(LinkBlocked(C), now=0)
        assert turn(member) == []
        member.step(LinkCleared(C), now=0)
        assert turn(member) == [
            SendAll(Numbered(3, (batch_of(1, 5, sender=B),), "c")),
            SendAll(Numbered(6, (batch_of(1, 5, first=1, sender=B),))),
        ]

    def test_a_grant_may_take_several_frames_and_a_turn_ends_after_some(self) -> None:
        member = _member(B)
        say_frames(member, 10)
        turn(member)
        _hear(member, A, Grant(5, 10))
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        numbered = [output.packet for output in (*outputs, *turn(member)) if isinstance(output, SendAll)]
        assert [packet.position for packet in numbered if isinstance(packet, Numbered)] == list(range(5, 15))


class TestPlaces:
    def test_what_has_a_later_number_waits(self) -> None:
        member = _member(B)
        _hear(member, C, Numbered(2, (batch_of(1, sender=C),)), packet_id=(2, 1))
        assert placed(member) == []
        _hear(member, A, Numbered(0, (batch_of(2),)), packet_id=(0, 4))
        assert placed(member) == ["a#1/0/0+2", "c#1/0/0+1"]
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(4, 0, 0), (4, 0, 1)]

    def test_a_number_that_nobody_used_ends_the_order_of_a_view(self) -> None:
        member = _member(B)
        _asking(member, (1, 5), (2, 9))
        _hear(member, A, Grant(1, 1))
        (output,) = turn(member)
        assert isinstance(output, SendAll)
        _hear(member, B, output.packet)
        member.close()
        assert placed(member) == []
        assert [str(batch) for batch in member.unordered()] == ["b#1/9/0+1", "b#1/9/1+1", "b#1/5/0+1"]

    def test_only_what_has_numbers_and_messages_is_for_all(self) -> None:
        assert [packet.TO_ALL for packet in SequencerUub.PACKETS] == [False, False, True, False]
        assert SequencerUub.orderer(VIEW) is None


class TestTheSequencer:
    def test_what_one_member_gets_together_is_one_grant(self) -> None:
        sequencer = _member(A, position=40)
        _hear(sequencer, B, _wants((2, 9), (1, 5)))
        _hear(sequencer, C, _wants((3, 5)))
        assert turn(sequencer) == [Send(B, Grant(40, 3)), Send(C, Grant(43, 3))]

    def test_the_window_closes_and_says_for_whom(self) -> None:
        sequencer = _member(A, window=2)
        _hear(sequencer, B, _wants((3, 5)))
        assert turn(sequencer) == [Send(B, Grant(0, 2, "a"))]
        assert (sequencer.backlog, sequencer.waiting(now=4), sequencer.idle) == (1, [(5, 1, 4)], False)
        assert sequencer.settled

    def test_nobody_has_to_consume_what_has_not_come(self) -> None:
        """Who has numbers and does not use them must not be mistaken for who does not consume."""
        sequencer = _member(A, window=2)
        _hear(sequencer, B, _wants((3, 5)))
        turn(sequencer)
        assert sequencer.bottleneck() is None
        _hear(sequencer, B, Numbered(0, (batch_of(1, 5, sender=B),)))
        assert sequencer.bottleneck() is None
        _hear(sequencer, B, Numbered(1, (batch_of(1, 5, sender=B, first=1),)))
        _hear(sequencer, A, Consumed(2, 2))
        assert sequencer.bottleneck() == B

    def test_own_asks_are_not_counted_twice(self) -> None:
        sequencer = _member(A, window=1)
        _hear(sequencer, B, _wants((2, 5)))
        (asked, _) = _asking(sequencer, (3, 5))
        assert isinstance(asked, Send)
        assert sequencer.backlog == 1 + 3
        _hear(sequencer, A, asked.packet)
        assert sequencer.backlog == 1 + 3

    def test_bytes_count_as_asked_for_until_the_messages_are_there(self) -> None:
        sequencer = _member(A, window=100, window_bytes=30)
        _hear(sequencer, B, _wants((4, 5)))
        _hear(sequencer, C, _wants((1, 5)))
        assert turn(sequencer) == [Send(B, Grant(0, 3, "a"))]
        assert turn(sequencer) == []
        short = batch_of(3, 5, sender=B, size=2)
        _hear(sequencer, B, Numbered(0, (short,)))
        assert len(short.block) < 30
        assert turn(sequencer) == [Send(B, Grant(3, 1)), Send(C, Grant(4, 1))]

    def test_long_messages_that_take_the_numbers_of_short_ones_close_the_window_when_they_come(self) -> None:
        sequencer = _member(A, window=100, window_bytes=30)
        _hear(sequencer, B, _wants((1, 5)))
        turn(sequencer)
        _hear(sequencer, B, Numbered(0, (batch_of(1, 9, sender=B, size=1_000),)))
        _hear(sequencer, C, _wants((1, 5)))
        assert turn(sequencer) == []
        assert sequencer.bottleneck() == A
        for member in (A, B, C):
            _hear(sequencer, member, Consumed(1, 100))
        assert turn(sequencer) == [Send(C, Grant(1, 1))]

    def test_nobody_gets_numbers_before_one_whose_link_is_full(self) -> None:
        sequencer = _member(A)
        _hear(sequencer, B, _wants((1, 9)))
        _hear(sequencer, C, _wants((1, 5)))
        sequencer.step(LinkBlocked(B), now=0)
        assert turn(sequencer) == []
        sequencer.step(LinkCleared(B), now=0)
        assert turn(sequencer) == [Send(B, Grant(0, 1)), Send(C, Grant(1, 1))]

    def test_a_turn_ends_after_some_grants(self) -> None:
        sequencer = _member(A)
        for level in range(9, 4, -1):
            for sender in (B, C):
                _hear(sequencer, sender, _wants((1, level)))
        outputs = turn(sequencer)
        assert sum(isinstance(output, Send) for output in outputs) == 8
        assert MoreToDo() in outputs
        assert len(turn(sequencer)) == 2

    def test_others_do_not_grant(self) -> None:
        member = _member(B)
        _asking(member, (3, 5))
        assert member.waiting(now=4) == [(5, 3, 4)]
        assert (member.backlog, member.bottleneck()) == (3, None)


def test_a_member_is_idle_when_all_it_broadcast_has_its_place() -> None:
    member = _member(B)
    assert member.idle
    _asking(member, (1, 5))
    assert not member.idle
    _hear(member, A, Grant(0, 1))
    (output,) = turn(member)
    assert not member.idle
    assert isinstance(output, SendAll)
    _hear(member, B, output.packet)
    assert member.idle


def check_grants(case: Case) -> None:
    """The property: numbers are granted by the rank of the asks, one by one, and used as they were granted.

    The sequencer has no messages in its queue, so the shared suite cannot see what it does. Who asks again
    for the same is served with its ask that waits, until that one is the first and has got a number.
    """
    group = play(case)
    rank = case.options.policy.rank
    sequencer = group.view.coordinator.name
    asked: list[tuple[tuple[int, int], str]] = []
    joined: dict[tuple[int, str, int], tuple[int, int]] = {}
    arrivals = 0
    granted: dict[str, deque[int]] = {name: deque() for name in group.members}
    for happened in group.journal:
        match happened:
            case harness.Received(member, Ask(wants=wants), peer, now) if member == sequencer:
                for want in wants:
                    arrivals += 1
                    ranked = rank(want.level, now)
                    turn = joined.setdefault((ranked, peer, want.level), (ranked, arrivals))
                    asked += [(turn, peer)] * want.count
                asked.sort()
            case harness.Sent(_, Grant(position=position, count=count), to) if to is not None:
                served = asked[:count]
                assert [name for _, name in served] == [to] * count
                joined = {name: turn for name, turn in joined.items() if (turn, to) not in served}
                del asked[:count]
                granted[to] += range(position, position + count)
            case harness.Sent(member, Numbered(position=position) as numbered, _):
                used = [granted[member].popleft() for _ in range(numbered.count)]
                assert used == list(range(position, position + numbered.count))
    assert not asked
    assert not any(granted.values())


@pytest.mark.parametrize("twin", TWINS.values(), ids=list(TWINS))
def test_numbers_are_granted_by_rank_and_all_of_them_are_used(twin: tuple[bool, Starvation]) -> None:
    @settings(max_examples=150)
    @given(cases("sequencer-uub", *twin))
    def holds(case: Case) -> None:
        check_grants(case)

    holds()
