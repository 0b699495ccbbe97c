"""Token requests: how the token finds the members that need it. The ring is tested with the moving sequencers."""

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.protocols.ring.base import NOTHING, SharedGrants, TokenRequest, TokenRequests

VIEW = View(1, (A, B, C))


def _grants(**options: int) -> SharedGrants:
    return SharedGrants(VIEW, OrderingOptions(**options))  # type: ignore[arg-type]


def test_a_member_says_once_that_it_has_something() -> None:
    wishes = TokenRequests(A, VIEW)
    assert wishes.renewed(NOTHING) is None
    assert wishes.renewed(96) == TokenRequest(1, 96)
    assert wishes.renewed(97) is None


def test_it_says_so_again_if_there_may_be_more_room_for_what_came() -> None:
    wishes = TokenRequests(A, VIEW)
    wishes.renewed(96)
    assert wishes.renewed(224) == TokenRequest(2, 224)


def test_the_latest_wish_counts_whichever_way_it_comes() -> None:
    wishes = TokenRequests(A, VIEW)
    wishes.learn_all(B, (TokenRequest(), TokenRequest(2, 7), TokenRequest()))
    wishes.learn(B, TokenRequest(1, 96))
    assert wishes.of_all()[1] == TokenRequest(2, 7)


def test_the_token_goes_to_the_first_along_the_ring_for_which_there_is_room() -> None:
    wishes = TokenRequests(A, VIEW)
    assert wishes.first_with_room((B, C), _grants()) is None
    wishes.learn(C, TokenRequest(1, 96))
    assert wishes.first_with_room((B, C), _grants()) == C
    wishes.learn(B, TokenRequest(1, 0))
    assert wishes.first_with_room((B, C), _grants()) == B


def test_who_has_nothing_that_there_is_room_for_is_left_out() -> None:
    wishes, grants = TokenRequests(A, VIEW), _grants(window=16)
    grants._placed = 14
    wishes.learn(B, TokenRequest(1, 0))
    wishes.learn(C, TokenRequest(1, 255))
    assert wishes.first_with_room((B, C), grants) == C


def test_a_token_with_the_wishes_of_another_view_is_refused() -> None:
    with pytest.raises(PeerFault, match="a token with 2 wishes"):
        TokenRequests(A, VIEW).learn_all(B, (TokenRequest(), TokenRequest()))


def test_a_token_with_a_wish_that_nobody_had_is_refused() -> None:
    with pytest.raises(PeerFault, match="a wish that a#1 never had"):
        TokenRequests(A, VIEW).learn_all(B, (TokenRequest(1, 5), TokenRequest(), TokenRequest()))
