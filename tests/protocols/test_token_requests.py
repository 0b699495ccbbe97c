"""Token requests: how the token finds the members that need it. The ring is tested with its protocols."""

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.grants import Grants
from priocast.protocols.ring.token_packets import NOTHING, TokenRequest
from priocast.protocols.ring.token_requests import TokenRequests

VIEW = View(1, (A, B, C))


def _grants(**options: int) -> Grants:
    return Grants(VIEW, OrderingOptions(**options), alone=False)  # type: ignore[arg-type]


def test_a_member_requests_the_token_once() -> None:
    requests = TokenRequests(A, VIEW)
    assert requests.next_own(NOTHING) is None
    assert requests.next_own(96) == TokenRequest(1, 96)
    assert requests.next_own(97) is None


def test_it_requests_again_if_there_may_be_more_room() -> None:
    requests = TokenRequests(A, VIEW)
    requests.next_own(96)
    assert requests.next_own(224) == TokenRequest(2, 224)


def test_the_latest_request_counts() -> None:
    requests = TokenRequests(A, VIEW)
    requests.learn_all(B, (TokenRequest(), TokenRequest(2, 7), TokenRequest()))
    requests.learn(B, TokenRequest(1, 96))
    assert requests.of_all()[1] == TokenRequest(2, 7)


def test_the_token_is_passed_to_the_first_member_with_room() -> None:
    requests = TokenRequests(A, VIEW)
    assert requests.first_with_room((B, C), _grants()) is None
    requests.learn(C, TokenRequest(1, 96))
    assert requests.first_with_room((B, C), _grants()) == C
    requests.learn(B, TokenRequest(1, 0))
    assert requests.first_with_room((B, C), _grants()) == B


def test_a_member_without_room_is_skipped() -> None:
    requests, grants = TokenRequests(A, VIEW), _grants(window=16)
    grants.ordered_count = 14
    requests.learn(B, TokenRequest(1, 0))
    requests.learn(C, TokenRequest(1, 255))
    assert requests.first_with_room((B, C), grants) == C


def test_a_token_of_another_view_is_rejected() -> None:
    with pytest.raises(PeerFault, match="a token with the requests of 2 members"):
        TokenRequests(A, VIEW).learn_all(B, (TokenRequest(), TokenRequest()))


def test_a_token_with_a_request_that_was_never_sent_is_rejected() -> None:
    with pytest.raises(PeerFault, match="a request that a#1 never sent"):
        TokenRequests(A, VIEW).learn_all(B, (TokenRequest(1, 5), TokenRequest(), TokenRequest()))
