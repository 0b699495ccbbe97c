"""The token, and what members that do not have it say about what they have for it."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.message import CONTROL
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import Position

NOTHING = -1
MEMBERS_MAX = 1024


class TokenRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a member has for the token: the level of its most urgent messages, or `NOTHING`.

    Of two requests of a member the one with the higher number counts.
    """

    number: Number = 0
    level: Annotated[int, msgspec.Meta(ge=NOTHING, le=CONTROL)] = NOTHING

    def __str__(self) -> str:
        return "nothing" if self.level == NOTHING else f"level {self.level}"


RequestsOfAll = Annotated[tuple[TokenRequest, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class RequestToken(Packet, frozen=True, tag="request-token"):
    """From a member without the token to all: I have something for it."""

    request: TokenRequest


class Token(Packet, frozen=True, tag="token"):
    """From the holder to another member: it is your turn, and `position` is the next one to assign."""

    position: Position


class TokenWithRequests(Token, frozen=True, tag="token"):
    """The token with what is known about the members that have something for it."""

    requests: RequestsOfAll
