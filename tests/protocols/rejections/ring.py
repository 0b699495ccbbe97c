"""What the token ring and the moving sequencers reject."""

from core.builders import A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_COUNT_MAX, BLOCK_BYTES_MAX, CONTROL, Reference, pack
from priocast.core.protocol import WINDOW_MAX, Broadcast, Packet
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.packets import Consumed, Data, Order, Ordered, Submit
from priocast.protocols.numbering.packets import NumberRequest, RequestNumbers
from priocast.protocols.ring.moving_bb import MovingBb
from priocast.protocols.ring.moving_packets import (
    NumberedByHolder,
    PendingCopy,
    PendingRequest,
    TokenWithMessages,
    TokenWithNumberRequests,
)
from priocast.protocols.ring.moving_ub import MovingUb
from priocast.protocols.ring.moving_uub import MovingUub
from priocast.protocols.ring.token_packets import (
    NOTHING,
    RequestToken,
    Token,
    TokenRequest,
    TokenWithRequests,
)
from priocast.protocols.ring.token_ring import TokenRing
from protocols.rejections.row import TURN, Situation, heard
from protocols.single_member import number_grant

STRANGER = ProcessId("x")
NO_REQUESTS = (TokenRequest(),) * 3


def _token(position: int, *requests: TokenRequest) -> TokenWithRequests:
    return TokenWithRequests(position, requests or (TokenRequest(0, NOTHING),) * 3)


def _with_request(requester: int, count: int) -> TokenWithNumberRequests:
    """The token of a moving sequencer, with a number request of this rank."""
    return TokenWithNumberRequests(
        0, NO_REQUESTS, (PendingRequest(requester, NumberRequest(7, count, 5), 0),)
    )


def _numbered(position: int, sender: ProcessId, first: int = 0, giver: int = 0) -> NumberedByHolder:
    return NumberedByHolder(position, (batch_of(1, first=first, sender=sender),), "", giver)


def _request(count: int) -> RequestNumbers:
    return RequestNumbers((NumberRequest(7, count, 5),))


TOKEN_RING = [
    Situation(TokenRing, B, heard(C, Consumed(2, 2)), heard(A, Ordered(0, (batch_of(2),))), window=2).rejects(
        "a report of less than before, which may come before the messages",
        C,
        Consumed(1, 2),
        "c#1 reports 1 messages consumed; it must be between 2",
    ),
    Situation(TokenRing, A).rejects("a second token", C, _token(0), "c#1 passes a second token to a#1"),
    Situation(TokenRing, B, heard(A, _token(3))).rejects(
        "a second token while the first waits", C, _token(3), "c#1 passes a second token to b#1"
    ),
    Situation(TokenRing, B, heard(A, Ordered(0, (batch_of(2),)))).rejects(
        "a token for an assigned position", A, _token(1), "a#1 passes a token for 1; 2 is next"
    ),
    Situation(TokenRing, B).rejects(
        "a token of another ring",
        A,
        _token(0, TokenRequest(), TokenRequest()),
        "a#1 passes a token with the requests of 2 members",
    ),
    Situation(TokenRing, B).rejects(
        "a token request that this member never sent",
        A,
        _token(0, TokenRequest(), TokenRequest(1, 5), TokenRequest()),
        "a#1 passes a token with a request that b#1 never sent",
    ),
    *(
        Situation(
            TokenRing, C, heard(A, Ordered(0, (batch_of(2),))), heard(B, Ordered(3, (batch_of(1, sender=B),)))
        ).rejects(
            "an assigned position",
            B,
            Ordered(position, (batch_of(1, first=1, sender=B),)),
            f"b#1 orders position {position}; 2 is next",
        )
        for position in (0, 3)
    ),
    Situation(TokenRing, A).rejects(
        "messages without the token",
        B,
        Ordered(0, (batch_of(1, sender=B),)),
        "b#1 orders position 0 although a#1 has the token",
    ),
    Situation(TokenRing, C, heard(A, _token(2))).rejects(
        "messages beyond a token that waits",
        B,
        Ordered(1, (batch_of(2, sender=B),)),
        "b#1 orders position 1 although c#1 has the token",
    ),
    Situation(TokenRing, C).rejects(
        "messages of another member", A, Ordered(0, (batch_of(1, sender=B),)), "a#1 submits a message of b#1"
    ),
]

TOKENS: list[tuple[type[OrderingProtocol], Packet]] = [
    (MovingBb, Token(0)),
    (MovingUb, TokenWithMessages(0, NO_REQUESTS, ())),
    (MovingUub, TokenWithNumberRequests(0, NO_REQUESTS, ())),
]


def _ordered_by_ub(position: int) -> Packet:
    return Ordered(position, (batch_of(1),))


def _ordered_by_bb(position: int) -> Packet:
    return Order(position, (Reference(A, 0, 0, 1),))


MOVING = [
    *(
        Situation(protocol, A).rejects("a second token", B, token, "b#1 passes a second token to a#1")
        for protocol, token in TOKENS
    ),
    Situation(MovingBb, B, heard(A, Token(5))).rejects(
        "a second token while the first waits", C, Token(6), "c#1 passes a second token to b#1"
    ),
    Situation(MovingUb, B, heard(A, Ordered(0, (batch_of(2),)))).rejects(
        "a token for an assigned position",
        A,
        TokenWithMessages(1, NO_REQUESTS, ()),
        "a#1 passes a token for 1; 2 is next",
    ),
    *(
        Situation(protocol, B, *(heard(A, order(assigned)) for assigned in before)).rejects(
            "an assigned position", C, order(position), f"c#1 orders position {position}; 1 is next"
        )
        for protocol, order in ((MovingUb, _ordered_by_ub), (MovingBb, _ordered_by_bb))
        for before, position in (((0,), 0), ((0, 5), 5))
    ),
    Situation(MovingUb, B).rejects(
        "a position beyond the window", A, Ordered(WINDOW_MAX + 1, (batch_of(1),)), "which no window allows"
    ),
    Situation(MovingUb, A).rejects(
        "an order without the token",
        B,
        Ordered(0, (batch_of(1, sender=B),)),
        "b#1 orders position 0 although a#1 has the token",
    ),
    Situation(MovingUb, B, heard(A, TokenWithMessages(1, NO_REQUESTS, ()))).rejects(
        "an order beyond a token that waits",
        C,
        Ordered(1, (batch_of(1),)),
        "c#1 orders position 1 although b#1 has the token",
    ),
    Situation(MovingBb, B, heard(A, Order(0, (Reference(C, 0, 0, 1),)))).rejects(
        "a message that is ordered already",
        A,
        Order(1, (Reference(C, 0, 0, 1),)),
        "a#1 orders c#1/0/0+1; number 1 of that level is next",
    ),
    Situation(MovingUb, B).rejects(
        "a message of a process that is not a member",
        A,
        Ordered(0, (batch_of(1, sender=STRANGER),)),
        "a#1 orders x#1/0/0+1, which no member sent",
    ),
    Situation(MovingUb, B, heard(C, Submit((batch_of(2, sender=C),)))).rejects(
        "a repeated number", C, Submit((batch_of(1, first=1, sender=C),)), "number 2 of that level is next"
    ),
    Situation(
        MovingUb,
        B,
        heard(
            C,
            Submit(
                tuple(
                    pack(C, 0, first, [b""] * BATCH_COUNT_MAX)
                    for first in range(0, 2 * WINDOW_MAX, BATCH_COUNT_MAX)
                )
            ),
        ),
        submit_max=1,
    ).rejects(
        "more than the credit",
        C,
        Submit((pack(C, 0, 2 * WINDOW_MAX, [b"", b""]),)),
        "more than its credit of 131073 messages",
    ),
    Situation(MovingBb, B).rejects(
        "messages of another member", C, Data((batch_of(1),)), "c#1 submits a message of a#1"
    ),
    Situation(MovingUb, B).rejects(
        "a copy of a message that no member sent",
        A,
        TokenWithMessages(0, NO_REQUESTS, (PendingCopy(batch_of(1, sender=STRANGER), 0),)),
        "a#1 passes on x#1/0/0+1, which no member sent",
    ),
]

MOVING_UUB = [
    Situation(MovingUub, B).rejects(
        "a number request of a process that is not a member",
        A,
        _with_request(3, 1),
        "a request of rank 3: no such member",
    ),
    Situation(MovingUub, A).rejects(
        "a request for more bytes than messages can have",
        C,
        RequestNumbers((NumberRequest(7, 1, BLOCK_BYTES_MAX + 1),)),
        "which is more than messages can have",
    ),
    Situation(MovingUub, A, submit_max=2).rejects(
        "a request beyond the credit", C, _request(3), "c#1 requests more than its credit of 2 numbers"
    ),
    Situation(MovingUub, B, heard(C, _request(1)), submit_max=2).rejects(
        "a request beyond the credit with one that the token carries",
        A,
        _with_request(2, 2),
        "c#1 requests more than its credit of 2 numbers",
    ),
    Situation(MovingUub, C).rejects(
        "numbers that were not requested",
        A,
        number_grant(0, 1),
        "a#1 grants 1 numbers from 0 on; 0 were requested",
    ),
    Situation(MovingUub, C, Broadcast(batch_of(3, sender=C)), TURN, heard(A, number_grant(4, 1))).rejects(
        "numbers below granted ones",
        B,
        number_grant(2, 1),
        "1 numbers from 2 on; 2 were requested, not before 5",
    ),
    Situation(MovingUub, A, heard(C, _request(1)), TURN).rejects(
        "a number of another member",
        B,
        _numbered(0, B),
        "b#1 uses numbers from 0 on, which it was not granted",
    ),
    Situation(MovingUub, B, heard(C, _numbered(0, C))).rejects(
        "a number that was used before", C, _numbered(0, C, first=1), "c#1 orders position 0; 1 is next"
    ),
    Situation(MovingUub, B).rejects(
        "a number beyond the window", C, _numbered(WINDOW_MAX + 1, C), "which no window allows"
    ),
    Situation(MovingUub, B).rejects(
        "numbers of a giver that is not a member",
        C,
        _numbered(0, C, giver=3),
        "granted by rank 3: no such member",
    ),
]

REJECTIONS = [*TOKEN_RING, *MOVING, *MOVING_UUB]
MALFORMED: list[tuple[type[OrderingProtocol], Packet]] = [
    (TokenRing, RequestToken(TokenRequest(1, level))) for level in (NOTHING - 1, CONTROL + 1)
]
