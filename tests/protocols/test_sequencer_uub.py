"""The fixed sequencer that grants numbers: what members request, and late binding.

What it does when everybody behaves is in `scripts/uub-*` and in the property suite.
"""

from collections import deque
from functools import partial

import pytest
from hypothesis import given, settings

from core.builders import A, B, C, batch_of
from priocast.core.guarantees import FIFO_AMONG_EQUALS, LIVENESS, PRIORITY
from priocast.core.protocol import (
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    OrderingOptions,
    Output,
    Send,
    SendAll,
)
from priocast.core.starvation import Starvation
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.numbering.packets import (
    RANGES_MAX,
    Numbered,
    NumberGrant,
    NumberRange,
    NumberRequest,
    RequestNumbers,
)
from priocast.protocols.sequencer.uub import SequencerUub
from protocols import harness
from protocols.orders import TWINS, patiently
from protocols.schedules import Case, cases, play
from protocols.single_member import VIEW, hear, member_of, number_grant, placed, say, say_frames, turn

_member = partial(member_of, SequencerUub)
_hear = partial(hear, packet_id=(0, 1))


def _after_broadcasting(member: SequencerUub, *batches: tuple[int, int]) -> list[Output]:
    """Let a member broadcast messages, given as count and level, and take a turn."""
    for count, level in batches:
        first = member.outgoing.count if level == 0 else 0
        say(member, batch_of(count, level, first, sender=member.me))
    return turn(member)


def _number_requests(*counts: tuple[int, int]) -> RequestNumbers:
    """Number requests, given as count and level, for messages of ten bytes each."""
    return RequestNumbers(tuple(NumberRequest(level, count, 10 * count) for count, level in counts))


def _granted_counts(output: Output) -> list[int]:
    assert isinstance(output, Send) and isinstance(output.packet, NumberGrant)
    return [each.count for each in output.packet.ranges]


class TestRequests:
    def test_new_messages_are_requested_for_once_by_level(self) -> None:
        member = _member(B)
        (output,) = _after_broadcasting(member, (2, 5), (1, 9))
        assert isinstance(output, Send)
        assert output.to == A
        assert isinstance(output.packet, RequestNumbers)
        assert [(request.level, request.count) for request in output.packet.requests] == [(9, 1), (5, 2)]
        assert [request.size for request in output.packet.requests] == [
            len(batch_of(count).block) for count in (1, 2)
        ]
        assert turn(member) == []

    def test_requests_stay_within_the_credit_the_most_urgent_first(self) -> None:
        member = _member(B, submit_max=2)
        (output,) = _after_broadcasting(member, (2, 5), (1, 9))
        assert isinstance(output, Send)
        assert isinstance(output.packet, RequestNumbers)
        assert [(request.level, request.count) for request in output.packet.requests] == [(9, 1), (5, 1)]
        assert turn(member) == []
        _hear(member, A, number_grant(0, 1))
        outputs = turn(member)
        assert [type(output.packet) for output in outputs if isinstance(output, Send)] == [RequestNumbers]
        assert member._requester._requested == 2

    def test_the_credit_has_a_reserve_for_the_urgent(self) -> None:
        member = _member(B, submit_max=16)
        _after_broadcasting(member, (16, 5))
        assert member._requester._requested == 13
        _after_broadcasting(member, (1, 255))
        assert member._requester._requested == 14

    def test_a_plain_group_requests_for_one_level(self) -> None:
        member = SequencerUub(B, VIEW, OrderingOptions(prioritised=False))
        say(member, batch_of(2, sender=B).in_line())
        (output,) = turn(member)
        assert isinstance(output, Send)
        assert isinstance(output.packet, RequestNumbers)
        assert [(request.level, request.count) for request in output.packet.requests] == [(0, 2)]

    def test_nothing_is_requested_over_a_full_link(self) -> None:
        member = _member(B)
        member.step(LinkBlocked(A), now=0)
        assert _after_broadcasting(member, (2, 5)) == []
        member.step(LinkCleared(A), now=0)
        assert len(turn(member)) == 1


class TestBinding:
    def test_the_most_urgent_message_takes_a_number_requested_for_another_one(self) -> None:
        member = _member(B)
        _after_broadcasting(member, (2, 5))
        _hear(member, A, number_grant(7, 2))
        outputs = _after_broadcasting(member, (1, 9))
        assert SendAll(Numbered(7, (batch_of(1, 9, sender=B), batch_of(1, 5, sender=B)))) in outputs
        assert member.outgoing.count == 1

    def test_numbers_are_bound_when_the_links_have_room_in_the_order_of_the_grants(self) -> None:
        member = _member(B)
        _after_broadcasting(member, (2, 5))
        _hear(member, A, number_grant(3, 1, "c"))
        _hear(member, A, number_grant(6, 1))
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
        _hear(member, A, number_grant(5, 10))
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        numbered = [output.packet for output in (*outputs, *turn(member)) if isinstance(output, SendAll)]
        assert [packet.position for packet in numbered if isinstance(packet, Numbered)] == list(range(5, 15))


class TestPositions:
    def test_what_has_a_later_number_waits(self) -> None:
        member = _member(B)
        _hear(member, C, Numbered(2, (batch_of(1, sender=C),)), packet_id=(2, 1))
        assert placed(member) == []
        _hear(member, A, Numbered(0, (batch_of(2),)), packet_id=(0, 4))
        assert placed(member) == ["a#1/0/0+2", "c#1/0/0+1"]
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(4, 0, 0), (4, 0, 1)]

    def test_an_unused_number_ends_the_order_of_a_view(self) -> None:
        member = _member(B)
        _after_broadcasting(member, (1, 5), (2, 9))
        _hear(member, A, number_grant(1, 1))
        (output,) = turn(member)
        assert isinstance(output, SendAll)
        _hear(member, B, output.packet)
        member.close()
        assert placed(member) == []
        assert [str(batch) for batch in member.unordered()] == ["b#1/9/0+1", "b#1/9/1+1", "b#1/5/0+1"]

    def test_only_numbered_messages_are_for_all(self) -> None:
        assert [packet.TO_ALL for packet in SequencerUub.PACKETS] == [False, False, True, False]
        assert SequencerUub.orderer(VIEW) is None


class TestTheSequencer:
    def test_consecutive_numbers_of_one_member_are_one_grant(self) -> None:
        sequencer = _member(A, position=40)
        _hear(sequencer, B, _number_requests((2, 9), (1, 5)))
        _hear(sequencer, C, _number_requests((3, 5)))
        assert turn(sequencer) == [Send(B, number_grant(40, 3)), Send(C, number_grant(43, 3))]

    def test_the_window_closes_and_names_the_bottleneck(self) -> None:
        sequencer = _member(A, window=2)
        _hear(sequencer, B, _number_requests((3, 5)))
        assert turn(sequencer) == [Send(B, number_grant(0, 2, "a"))]
        assert (sequencer.backlog, sequencer.inspect(now=4).queues, sequencer.idle) == (1, [(5, 1, 4)], False)
        assert sequencer.settled

    def test_there_is_no_bottleneck_while_granted_numbers_are_unused(self) -> None:
        """A member that does not use its numbers must not be mistaken for one that does not consume."""
        sequencer = _member(A, window=2)
        _hear(sequencer, B, _number_requests((3, 5)))
        turn(sequencer)
        assert sequencer.inspect(0).bottleneck is None
        _hear(sequencer, B, Numbered(0, (batch_of(1, 5, sender=B),)))
        assert sequencer.inspect(0).bottleneck is None
        _hear(sequencer, B, Numbered(1, (batch_of(1, 5, sender=B, first=1),)))
        _hear(sequencer, A, Consumed(2, 2))
        assert sequencer.inspect(0).bottleneck == B

    def test_own_requests_are_not_counted_twice(self) -> None:
        sequencer = _member(A, window=1)
        _hear(sequencer, B, _number_requests((2, 5)))
        (asked, _) = _after_broadcasting(sequencer, (3, 5))
        assert isinstance(asked, Send)
        assert sequencer.backlog == 1 + 3
        _hear(sequencer, A, asked.packet)
        assert sequencer.backlog == 1 + 3

    def test_bytes_count_as_requested_until_the_messages_arrive(self) -> None:
        sequencer = _member(A, window=100, window_bytes=30)
        _hear(sequencer, B, _number_requests((4, 5)))
        _hear(sequencer, C, _number_requests((1, 5)))
        assert turn(sequencer) == [Send(B, number_grant(0, 3, "a"))]
        assert turn(sequencer) == []
        short = batch_of(3, 5, sender=B, size=2)
        _hear(sequencer, B, Numbered(0, (short,)))
        assert len(short.block) < 30
        assert turn(sequencer) == [Send(B, number_grant(3, 1)), Send(C, number_grant(4, 1))]

    def test_long_messages_with_numbers_of_short_ones_close_the_window_when_they_arrive(self) -> None:
        sequencer = _member(A, window=100, window_bytes=30)
        _hear(sequencer, B, _number_requests((1, 5)))
        turn(sequencer)
        _hear(sequencer, B, Numbered(0, (batch_of(1, 9, sender=B, size=1_000),)))
        _hear(sequencer, C, _number_requests((1, 5)))
        assert turn(sequencer) == []
        assert sequencer.inspect(0).bottleneck == A
        for member in (A, B, C):
            _hear(sequencer, member, Consumed(1, 100))
        assert turn(sequencer) == [Send(C, number_grant(1, 1))]

    def test_no_request_is_served_before_one_whose_link_is_full(self) -> None:
        sequencer = _member(A)
        _hear(sequencer, B, _number_requests((1, 9)))
        _hear(sequencer, C, _number_requests((1, 5)))
        sequencer.step(LinkBlocked(B), now=0)
        assert turn(sequencer) == []
        sequencer.step(LinkCleared(B), now=0)
        assert turn(sequencer) == [Send(B, number_grant(0, 1)), Send(C, number_grant(1, 1))]

    def test_what_a_member_is_granted_in_a_turn_is_one_packet(self) -> None:
        sequencer = _member(A)
        for sender in (B, C):
            _hear(sequencer, sender, _number_requests((2, 9), (3, 5)))
        assert turn(sequencer) == [
            Send(B, NumberGrant((NumberRange(0, 2), NumberRange(4, 3)))),
            Send(C, NumberGrant((NumberRange(2, 2), NumberRange(7, 3)))),
        ]

    def test_a_turn_ends_when_the_grant_of_a_member_is_full(self) -> None:
        sequencer = _member(A, window=1_000)
        for level in range(RANGES_MAX + 1):
            for sender in (B, C):
                _hear(sequencer, sender, _number_requests((1, level)))
        *grants, more = turn(sequencer)
        assert [_granted_counts(output) for output in grants] == [[1] * RANGES_MAX] * 2
        assert more == MoreToDo()
        assert [_granted_counts(output) for output in turn(sequencer)] == [[1]] * 2

    def test_others_do_not_grant(self) -> None:
        member = _member(B)
        _after_broadcasting(member, (3, 5))
        assert member.inspect(now=4).queues == [(5, 3, 4)]
        assert (member.backlog, member.inspect(0).bottleneck) == (3, None)


def test_a_member_is_idle_when_all_its_messages_are_ordered() -> None:
    member = _member(B)
    assert member.idle
    _after_broadcasting(member, (1, 5))
    assert not member.idle
    _hear(member, A, number_grant(0, 1))
    (output,) = turn(member)
    assert not member.idle
    assert isinstance(output, SendAll)
    _hear(member, B, output.packet)
    assert member.idle


def check_grants(case: Case) -> None:
    """The property: numbers are granted by the sort key of the requests, and used as they were granted.

    The sequencer has no messages in its queue, so the shared suite cannot see what it does. A further request
    with the same key joins the one that waits, until that one is the first and was granted a number.
    """
    group = play(case)
    rank = case.options.policy.sort_key
    sequencer = group.view.coordinator.name
    asked: list[tuple[tuple[int, int], str]] = []
    joined: dict[tuple[int, str, int], tuple[int, int]] = {}
    arrivals = 0
    pieces: dict[int, tuple[str, int]] = {}
    number_next = 0
    granted: dict[str, deque[int]] = {name: deque() for name in group.members}
    for happened in group.journal:
        match happened:
            case harness.Received(member, RequestNumbers(requests=requests), peer, now) if (
                member == sequencer
            ):
                for request in requests:
                    arrivals += 1
                    ranked = rank(request.level, now)
                    turn = joined.setdefault((ranked, peer, request.level), (ranked, arrivals))
                    asked += [(turn, peer)] * request.count
                asked.sort()
            case harness.Sent(_, NumberGrant(ranges=ranges), to) if to is not None:
                pieces |= {each.position: (to, each.count) for each in ranges}
                while number_next in pieces:
                    to, count = pieces.pop(number_next)
                    served = asked[:count]
                    if [name for _, name in served] != [to] * count:
                        raise harness.Violation(PRIORITY, f"{to} is granted {count} numbers before {served}")
                    joined = {name: turn for name, turn in joined.items() if (turn, to) not in served}
                    del asked[:count]
                    granted[to] += range(number_next, number_next + count)
                    number_next += count
            case harness.Sent(member, Numbered(position=position) as numbered, _):
                used = [granted[member].popleft() for _ in range(numbered.count)]
                if used != list(range(position, position + numbered.count)):
                    raise harness.Violation(FIFO_AMONG_EQUALS, f"{member} uses {used} from {position} on")
    if asked or any(granted.values()):
        raise harness.Violation(LIVENESS, f"{asked} are not granted, {granted} are not used")


@pytest.mark.parametrize("twin", TWINS.values(), ids=list(TWINS))
def test_numbers_are_granted_by_sort_key_and_all_of_them_are_used(twin: tuple[bool, Starvation]) -> None:
    @settings(max_examples=patiently(75))
    @given(cases("sequencer-uub", *twin))
    def holds(case: Case) -> None:
        check_grants(case)

    holds()
