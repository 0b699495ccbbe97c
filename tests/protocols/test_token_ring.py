"""The token ring: one token, which moves on request and rests otherwise.

What it does with correct peers is in `scripts/` and in the property suite.
"""

from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings

from core.builders import A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.protocol import (
    Consume,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    Output,
    Send,
    SendAll,
    SendEach,
)
from priocast.core.starvation import Strict
from priocast.protocols.flow.packets import Consumed, Ordered
from priocast.protocols.ring.token_packets import NOTHING, RequestToken, TokenRequest, TokenWithRequests
from priocast.protocols.ring.token_ring import TokenRing
from protocols.harness import Group, Sent
from protocols.harness import Received as HasReceived
from protocols.orders import patiently
from protocols.schedules import NAMES, Case, cases
from protocols.single_member import VIEW, hear, member_of, packets, say, say_frames, turn, turn_heard

_member = partial(member_of, TokenRing)


def _ordered(outputs: list[Output]) -> list[str]:
    return [f"{each.position}: {batch}" for each in packets(outputs, Ordered) for batch in each.batches]


def _passed(outputs: list[Output]) -> list[tuple[str, int]]:
    return [
        (output.to.name, output.packet.position)
        for output in outputs
        if isinstance(output, Send) and isinstance(output.packet, TokenWithRequests)
    ]


def _requests(*requests: tuple[int, int]) -> tuple[TokenRequest, ...]:
    return tuple(TokenRequest(number, level) for number, level in requests)


def _token(position: int, *levels: int, number: int = 0) -> TokenWithRequests:
    return TokenWithRequests(
        position, tuple(TokenRequest(number, level) for level in levels or (NOTHING,) * 3)
    )


class TestTheToken:
    @settings(max_examples=patiently(120))
    @given(cases("token-ring", True, Strict()))
    def test_there_is_one_token_at_any_time(self, case: Case) -> None:
        group = Group(NAMES[: case.size], case.order, case.options)
        serials = count()
        for action in case.actions:
            action.happen(group, serials)
            here = [
                member
                for member in group.members.values()
                if isinstance(member.protocol, TokenRing) and not member.protocol._ring.is_elsewhere
            ]
            sent = sum(
                isinstance(said, Sent) and isinstance(said.packet, TokenWithRequests)
                for said in group.journal
            )
            heard = sum(
                isinstance(said, HasReceived) and isinstance(said.packet, TokenWithRequests)
                for said in group.journal
            )
            assert len(here) + sent - heard == 1

    def test_the_coordinator_has_it_first_and_keeps_it_until_it_is_requested(self) -> None:
        holder, other = _member(A, position=40), _member(B, position=40)
        say(holder, batch_of(1))
        say(other, batch_of(1, sender=B))
        assert _ordered(turn_heard(holder)) == ["40: a#1/0/0+1"]
        assert turn_heard(holder) == []
        assert turn_heard(other) == [SendEach(RequestToken(TokenRequest(1, 0)))]
        hear(holder, B, RequestToken(TokenRequest(1, 0)))
        assert turn_heard(holder) == [
            Send(B, TokenWithRequests(41, _requests((1, NOTHING), (1, 0), (0, NOTHING))))
        ]
        assert turn_heard(holder) == []

    def test_it_is_passed_to_the_next_requesting_member_along_the_ring(self) -> None:
        second, third = _member(B), _member(C)
        for member in (second, third):
            hear(member, A, _token(0, 5, 5, 5))
        assert _passed(turn_heard(second)) == [], "b knows of no request: one with number 0 does not count"
        second, third = _member(B), _member(C)
        for member in (second, third):
            hear(member, A, RequestToken(TokenRequest(1, 7)))
            hear(member, A, _token(0))
            assert _passed(turn_heard(member)) == [("a", 0)]

    def test_a_request_that_the_token_has_overtaken_is_ignored(self) -> None:
        member = _member(B)
        hear(member, A, TokenWithRequests(0, _requests((1, NOTHING), (0, NOTHING), (2, NOTHING))))
        hear(member, C, RequestToken(TokenRequest(1, 7)))
        assert turn_heard(member) == [], "c has had the token since, and sent its messages"
        hear(member, C, RequestToken(TokenRequest(3, 7)))
        assert _passed(turn_heard(member)) == [("c", 0)]

    def test_a_holder_with_messages_left_does_not_have_to_request_it(self) -> None:
        holder = _member(A, burst=1)
        say(holder, batch_of(2, level=9))
        hear(holder, B, RequestToken(TokenRequest(1, 0)))
        outputs = turn_heard(holder)
        assert _ordered(outputs) == ["0: a#1/9/0+1"]
        assert outputs[-1] == Send(B, TokenWithRequests(1, _requests((1, 9), (1, 0), (0, NOTHING))))
        assert turn_heard(holder) == []

    def test_a_more_urgent_message_renews_the_request(self) -> None:
        member = _member(B)
        say(member, batch_of(1, level=10, sender=B))
        assert turn_heard(member) == [SendEach(RequestToken(TokenRequest(1, 10)))]
        say(member, batch_of(1, level=20, sender=B))
        assert turn_heard(member) == [], "a class that was requested"
        say(member, batch_of(1, level=200, sender=B))
        assert turn_heard(member) == [SendEach(RequestToken(TokenRequest(2, 200)))]

    def test_it_is_accepted_when_everything_below_its_position_was_received(self) -> None:
        member = _member(C)
        say(member, batch_of(1, sender=C))
        hear(member, B, _token(3))
        assert turn_heard(member) == [], "nothing is sent or requested: the token is here"
        hear(member, B, Ordered(2, (batch_of(1, sender=B),)))
        assert turn_heard(member) == []
        hear(member, A, Ordered(0, (batch_of(2),)))
        assert _ordered(turn_heard(member)) == ["3: c#1/0/0+1"]


class TestAVisit:
    def test_visits_follow_each_other_if_no_other_member_requests_the_token(self) -> None:
        holder = _member(A, burst=2)
        say(holder, batch_of(5))
        assert _ordered(turn_heard(holder)) == ["0: a#1/0/0+2", "2: a#1/0/2+2", "4: a#1/0/4+1"]

    def test_a_turn_ends_after_some_frames_and_so_does_a_visit(self) -> None:
        holder = _member(A)
        say_frames(holder, 20)
        outputs = turn_heard(holder)
        assert [type(output) for output in outputs] == [SendAll] * 6 + [MoreToDo]
        hear(holder, C, RequestToken(TokenRequest(1, 0)))
        outputs = turn_heard(holder)
        assert [type(output) for output in outputs] == [SendAll] * 6 + [Send], "another member waits"
        assert _passed(outputs) == [("c", 12)]

    def test_a_holder_without_room_keeps_the_token(self) -> None:
        holder = _member(A, window=2)
        say(holder, batch_of(5))
        assert _ordered(turn_heard(holder)) == ["0: a#1/0/0+2"]
        hear(holder, B, RequestToken(TokenRequest(1, 0)))
        assert turn_heard(holder) == []
        for member in (A, B, C):
            hear(holder, member, Consumed(1, 2))
        outputs = turn_heard(holder)
        assert _ordered(outputs) == ["2: a#1/0/2+1"]
        assert _passed(outputs) == [("b", 3)]

    def test_a_holder_without_room_passes_the_token_where_there_is_room(self) -> None:
        holder = _member(A, window=16)
        say(holder, batch_of(16))
        assert _ordered(turn_heard(holder)) == ["0: a#1/0/0+13"]
        hear(holder, B, RequestToken(TokenRequest(1, 0)))
        assert turn_heard(holder) == []
        hear(holder, C, RequestToken(TokenRequest(1, 255)))
        assert _passed(turn_heard(holder)) == [("c", 13)]

    def test_a_full_link_keeps_the_holder_from_sending_and_the_token_from_passing(self) -> None:
        holder = _member(A)
        say(holder, batch_of(1))
        hear(holder, B, RequestToken(TokenRequest(1, 0)))
        holder.step(LinkBlocked(C), now=0)
        assert turn_heard(holder) == []
        assert holder.backlog == 1
        holder.step(LinkCleared(C), now=0)
        holder.step(LinkBlocked(B), now=0)
        assert turn_heard(holder) == []
        holder.step(LinkCleared(B), now=0)
        assert _passed(turn_heard(holder)) == [("b", 1)]

    def test_a_holder_with_nothing_to_send_passes_the_token_over_a_free_link(self) -> None:
        holder = _member(A)
        for member in (B, C):
            hear(holder, member, RequestToken(TokenRequest(1, 0)))
        holder.step(LinkBlocked(B), now=0)
        assert _passed(turn_heard(holder)) == [("c", 0)]


class TestTheWindow:
    def test_messages_of_others_take_room_as_well(self) -> None:
        member = _member(B, window=3)
        say(member, batch_of(3, sender=B))
        hear(member, A, Ordered(0, (batch_of(2),)))
        hear(member, A, _token(2))
        assert _ordered(turn_heard(member)) == ["2: b#1/0/0+1"]
        assert member.inspect(0).bottleneck == A

    def test_consumption_is_reported_to_all(self) -> None:
        member = _member(C, window=4)
        hear(member, A, Ordered(0, (batch_of(2),)))
        assert member.step(Consume(1), now=0) == [SendEach(Consumed(1, 4))]

    def test_a_report_may_come_before_the_messages(self) -> None:
        member = _member(B, window=2)
        hear(member, C, Consumed(2, 2))
        hear(member, A, Ordered(0, (batch_of(2),)))
        with pytest.raises(PeerFault, match="c#1 reports 1 messages consumed; it must be between 2"):
            hear(member, C, Consumed(1, 2))

    def test_the_holder_knows_the_bottleneck(self) -> None:
        holder = _member(A, window=1)
        assert holder.inspect(0).bottleneck is None
        say(holder, batch_of(1))
        turn_heard(holder)
        assert holder.inspect(0).bottleneck is None
        assert holder.idle
        hear(holder, B, RequestToken(TokenRequest(1, 0)))
        assert not holder.idle, "the token must be passed"
        assert holder.inspect(0).bottleneck == A
        hear(holder, A, Consumed(1, 1))
        assert holder.inspect(0).bottleneck == B

    def test_without_the_token_there_is_no_bottleneck(self) -> None:
        member = _member(B, window=1)
        say(member, batch_of(1, sender=B))
        hear(member, A, Ordered(0, (batch_of(1),)))
        assert member.inspect(0).bottleneck is None


class TestTheEndOfAView:
    def test_messages_after_a_gap_have_no_position(self) -> None:
        member = _member(C)
        hear(member, B, Ordered(2, (batch_of(1, sender=B),)))
        member.close()
        assert member.unconsumed() == []
        hear(member, A, Ordered(0, (batch_of(2),)))
        assert [ordered_batch.position for ordered_batch in member.unconsumed()] == [0, 2]

    def test_messages_in_flight_are_kept(self) -> None:
        holder = _member(A)
        say(holder, batch_of(2, level=3))
        turn(holder)
        assert [str(batch) for batch in holder.unordered()] == ["a#1/3/0+2"]
        assert not holder.settled

    def test_only_packets_that_decide_the_order_are_for_all(self) -> None:
        assert {packet.name() for packet in TokenRing.PACKETS if packet.TO_ALL} == {"ordered"}
        assert TokenRing.orderer(VIEW) is None
