"""The moving sequencer that gives out numbers: what is asked for, handed over, used, and refused."""

from functools import partial

import pytest

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Send
from priocast.core.starvation import Ageing
from priocast.core.view import View
from priocast.protocols.numbering.base import Ask, Grant
from priocast.protocols.numbering.requests import Want
from priocast.protocols.ring.base import Wish
from priocast.protocols.ring.moving_uub import LadenToken, MovingUub, Numbered, PendingAsk
from protocols.single_member import hear, member_of, packets, say, turn

WISHES = (Wish(),) * 3

_uub = partial(member_of, MovingUub)


class TestHandingOver:
    def test_asks_are_handed_over_with_the_time_that_they_have_waited(self) -> None:
        holder = _uub(A, window=1)
        hear(holder, C, Ask((Want(9, 1, 5), Want(7, 2, 10))), now=3)
        (token,) = packets(turn(holder, now=8), LadenToken)
        assert token.asks == (PendingAsk(2, Want(7, 2, 10), 5),)
        assert holder.idle

    def test_asks_beyond_the_window_stay_and_are_asked_for(self) -> None:
        holder = _uub(A, window=2)
        hear(holder, C, Ask(tuple(Want(level, 1, 5) for level in (9, 8, 7, 6, 5))))
        (token,) = packets(turn(holder), LadenToken)
        assert [ask.want.level for ask in token.asks] == [7, 6]
        assert token.wishes[0].level == 5
        assert holder.backlog == 1

    def test_an_old_ask_goes_before_a_new_one_that_is_a_little_more_urgent(self) -> None:
        member = _uub(B, window=1, starvation=Ageing(MILLISECOND))
        now = 9 * MILLISECOND
        hear(member, A, Ask((Want(12, 1, 5),)), now=now)
        handed_over = PendingAsk(2, Want(10, 1, 5), 5 * MILLISECOND)
        hear(member, A, LadenToken(0, WISHES, (handed_over,)), now=now)
        assert Send(C, Grant(0, 1, "a")) in turn(member, now)

    def test_a_stranger_s_ask_is_refused(self) -> None:
        token = LadenToken(0, WISHES, (PendingAsk(3, Want(7, 1, 5), 0),))
        with pytest.raises(PeerFault, match="an ask of rank 3, which no member has"):
            hear(_uub(B), A, token)


class TestNumbers:
    def test_nobody_asks_for_more_than_its_credit(self) -> None:
        with pytest.raises(PeerFault, match="more than the 2 numbers that it has credit for"):
            hear(_uub(A, submit_max=2), C, Ask((Want(7, 3, 5),)))

    def test_what_is_handed_over_counts_as_asked_for(self) -> None:
        member = _uub(B, submit_max=2)
        hear(member, C, Ask((Want(7, 1, 5),)))
        token = LadenToken(0, WISHES, (PendingAsk(2, Want(7, 2, 5), 0),))
        with pytest.raises(PeerFault, match="more than the 2 numbers"):
            hear(member, A, token)

    def test_numbers_that_were_not_asked_for_are_refused(self) -> None:
        with pytest.raises(PeerFault, match="a#1 grants 1 numbers from 0 on; 0 were asked for"):
            hear(_uub(C), A, Grant(0, 1))

    def test_numbers_below_those_that_one_has_are_refused(self) -> None:
        member = _uub(C)
        say(member, batch_of(3, sender=C))
        turn(member)
        hear(member, A, Grant(4, 1))
        with pytest.raises(PeerFault, match="1 numbers from 2 on; 2 were asked for, not before 5"):
            hear(member, B, Grant(2, 1))

    def test_only_who_got_a_number_uses_it(self) -> None:
        holder = _uub(A)
        hear(holder, C, Ask((Want(7, 1, 5),)))
        turn(holder)
        with pytest.raises(PeerFault, match="b#1 uses numbers from 0 on, which it was not granted"):
            hear(holder, B, Numbered(0, (batch_of(1, sender=B),), "", 0))

    def test_a_number_is_used_once(self) -> None:
        member = _uub(B)
        hear(member, C, Numbered(0, (batch_of(1, sender=C),), "", 0))
        with pytest.raises(PeerFault, match="number 0, which was used before"):
            hear(member, C, Numbered(0, (batch_of(1, first=1, sender=C),), "", 0))

    def test_a_number_that_no_window_allows_is_refused(self) -> None:
        with pytest.raises(PeerFault, match="which no window allows"):
            hear(_uub(B), C, Numbered(WINDOW_MAX + 1, (batch_of(1, sender=C),), "", 0))

    def test_numbers_that_no_member_gave_are_refused(self) -> None:
        with pytest.raises(PeerFault, match="granted by rank 3, which no member has"):
            hear(_uub(B), C, Numbered(0, (batch_of(1, sender=C),), "", 3))

    def test_nobody_has_to_consume_what_has_not_come(self) -> None:
        alone = MovingUub(A, View(1, (A,)), OrderingOptions(window=1))
        hear(alone, A, Ask((Want(7, 2, 10),)))
        turn(alone)
        assert alone.bottleneck() is None
        say(alone, batch_of(2))
        alone._asked = 1
        hear(alone, A, Grant(0, 1))
        for packet in packets(turn(alone), Numbered):
            hear(alone, A, packet)
        assert alone.bottleneck() == A

    def test_what_others_gave_out_counts_in_the_window(self) -> None:
        member = _uub(B, window=2)
        hear(member, C, Numbered(0, (batch_of(1, sender=C),), "", 0))
        hear(member, C, Ask((Want(7, 3, 15),)))
        hear(member, A, LadenToken(1, WISHES, ()))
        assert Send(C, Grant(1, 1, "a")) in turn(member)

    def test_what_has_a_number_behind_one_that_nobody_used_is_sent_again(self) -> None:
        member = _uub(C)
        say(member, batch_of(1, sender=C))
        turn(member)
        hear(member, A, Grant(3, 1))
        for packet in packets(turn(member), Numbered):
            hear(member, C, packet)
        member.close()
        assert member.unconsumed() == []
        assert member.unordered() == [batch_of(1, sender=C)]
