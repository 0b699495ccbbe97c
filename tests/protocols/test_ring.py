"""The ring: the token is accepted when everything below its position is here, and is at one member only."""

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.view import View
from priocast.protocols.ring.ring import Ring
from priocast.protocols.ring.token_packets import Token

VIEW = View(1, (A, B, C))


def test_the_coordinator_has_the_token_first() -> None:
    assert [Ring(member, VIEW, 40).position for member in VIEW.members] == [40, None, None]
    assert [Ring(member, VIEW, 40).is_elsewhere for member in VIEW.members] == [False, True, True]


def test_members_follow_each_other_in_the_order_of_the_view() -> None:
    ring = Ring(B, VIEW, 0)
    assert ring.others == (C, A)
    assert [ring.successor(member) for member in VIEW.members] == [B, C, A]
    assert ring.reachable({C: True}) == [A]


def test_a_token_that_overtakes_messages_waits_for_them() -> None:
    ring = Ring(B, VIEW, 0)
    ring.receive(A, Token(3), position_next=1)
    ring.accept(position_next=2)
    assert (ring.position, ring.is_elsewhere) == (None, False)
    ring.accept(position_next=3)
    assert ring.position == 3
    assert ring.release() == 3
    assert ring.is_elsewhere


def test_a_second_token_or_one_for_an_assigned_position_is_rejected() -> None:
    with pytest.raises(PeerFault, match="b#1 passes a second token to a#1"):
        Ring(A, VIEW, 0).receive(B, Token(0), position_next=0)
    ring = Ring(B, VIEW, 0)
    with pytest.raises(PeerFault, match="a#1 passes a token for 1; 2 is next"):
        ring.receive(A, Token(1), position_next=2)
    ring.receive(A, Token(5), position_next=2)
    with pytest.raises(PeerFault, match="c#1 passes a second token to b#1"):
        ring.receive(C, Token(6), position_next=2)


def test_no_other_member_orders_from_the_position_of_the_token_on() -> None:
    ring = Ring(B, VIEW, 0)
    ring.check_may_order(A, 0, position_end=9)
    ring.receive(A, Token(5), position_next=2)
    ring.check_may_order(A, 2, position_end=5)
    with pytest.raises(PeerFault, match="c#1 orders position 4 although b#1 has the token"):
        ring.check_may_order(C, 4, position_end=6)
    ring.accept(position_next=5)
    with pytest.raises(PeerFault, match="c#1 orders position 5 although b#1 has the token"):
        ring.check_may_order(C, 5, position_end=6)
    ring.check_may_order(B, 5, position_end=6)
