"""The moving sequencer that grants numbers: what is requested, carried and used."""

from functools import partial

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.protocol import OrderingOptions, Send
from priocast.core.starvation import Ageing
from priocast.core.view import View
from priocast.protocols.numbering.packets import NumberRequest, RequestNumbers
from priocast.protocols.ring.moving_packets import NumberedByHolder, PendingRequest, TokenWithNumberRequests
from priocast.protocols.ring.moving_uub import MovingUub
from priocast.protocols.ring.token_packets import TokenRequest
from protocols.single_member import hear, member_of, number_grant, packets, say, turn

NO_REQUESTS = (TokenRequest(),) * 3

_uub = partial(member_of, MovingUub)


class TestWhatTheTokenCarries:
    def test_requests_with_their_waiting_time(self) -> None:
        holder = _uub(A, window=1)
        hear(holder, C, RequestNumbers((NumberRequest(9, 1, 5), NumberRequest(7, 2, 10))), now=3)
        (token,) = packets(turn(holder, now=8), TokenWithNumberRequests)
        assert token.pending == (PendingRequest(2, NumberRequest(7, 2, 10), 5),)
        assert holder.idle

    def test_requests_beyond_the_window_stay_and_request_the_token(self) -> None:
        holder = _uub(A, window=2)
        hear(holder, C, RequestNumbers(tuple(NumberRequest(level, 1, 5) for level in (9, 8, 7, 6, 5))))
        (token,) = packets(turn(holder), TokenWithNumberRequests)
        assert [pending.request.level for pending in token.pending] == [7, 6]
        assert token.requests[0].level == 5
        assert holder.backlog == 1

    def test_an_old_request_precedes_a_new_one_that_is_a_little_more_urgent(self) -> None:
        member = _uub(B, window=1, starvation=Ageing(MILLISECOND))
        now = 9 * MILLISECOND
        hear(member, A, RequestNumbers((NumberRequest(12, 1, 5),)), now=now)
        handed_over = PendingRequest(2, NumberRequest(10, 1, 5), 5 * MILLISECOND)
        hear(member, A, TokenWithNumberRequests(0, NO_REQUESTS, (handed_over,)), now=now)
        assert Send(C, number_grant(0, 1, "a")) in turn(member, now)


class TestNumbers:
    def test_there_is_no_bottleneck_while_granted_numbers_are_unused(self) -> None:
        alone = MovingUub(A, View(1, (A,)), OrderingOptions(window=1))
        hear(alone, A, RequestNumbers((NumberRequest(7, 2, 10),)))
        turn(alone)
        assert alone.inspect(0).bottleneck is None
        say(alone, batch_of(2))
        alone._requester._requested = 1
        hear(alone, A, number_grant(0, 1))
        for packet in packets(turn(alone), NumberedByHolder):
            hear(alone, A, packet)
        assert alone.inspect(0).bottleneck == A

    def test_numbers_that_others_granted_count_in_the_window(self) -> None:
        member = _uub(B, window=2)
        hear(member, C, NumberedByHolder(0, (batch_of(1, sender=C),), "", 0))
        hear(member, C, RequestNumbers((NumberRequest(7, 3, 15),)))
        hear(member, A, TokenWithNumberRequests(1, NO_REQUESTS, ()))
        assert Send(C, number_grant(1, 1, "a")) in turn(member)

    def test_messages_behind_an_unused_number_are_sent_again(self) -> None:
        member = _uub(C)
        say(member, batch_of(1, sender=C))
        turn(member)
        hear(member, A, number_grant(3, 1))
        for packet in packets(turn(member), NumberedByHolder):
            hear(member, C, packet)
        member.close()
        assert member.unconsumed() == []
        assert member.unordered() == [batch_of(1, sender=C)]
