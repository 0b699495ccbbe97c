"""The ring: one token goes from member to member, in the order of the view, and who has it gives out places.

The token says which place is next. Links are FIFO between two members only, so it may overtake the packets
that gave out the places before: it is accepted when all of those are here, and never before. Then the holder
knows what has a place already, and how much room is left.

`TokenRequests` tell the holder which members have something to order. A member that has something, but not
the token, announces it to all, and the token carries what its holder knows.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.priority import class_of
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.grants import Grants

NOTHING = -1
MEMBERS_MAX = 1024

Number = Annotated[int, msgspec.Meta(ge=0)]


class Token(Packet, frozen=True):
    """From the holder to another member: it is your turn, and `number` is the next place."""

    number: Number


class SharedGrants(Grants):
    """Grants that all members keep, because any of them may be the next to make use of them."""

    def __init__(self, view: View, options: OrderingOptions) -> None:
        super().__init__(view, options, alone=False)

    @property
    def window(self) -> int:
        """How many messages may be under way in all."""
        return self._limit[-1] - min(self._consumed.values())

    def placed_together(self, batches: Sequence[Batch]) -> None:
        """Batches are under way, which whoever gave them their places counts as one."""
        size = sum(len(batch.block) for batch in batches)
        self._placed += sum(batch.count for batch in batches)
        self._in_flight.append((self._placed, size))
        self._in_flight_bytes += size


class RingProtocol(FlowControlledProtocol):
    """A member of the ring; the view's coordinator has the token first.

    `_number_next` is the next place, or None while another member has the token.
    """

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        rank = self.ranks[me]
        self._others = view.members[rank + 1 :] + view.members[:rank]
        self._number_next = position if me == view.coordinator else None
        self._token: Token | None = None

    def _successor(self, member: ProcessId) -> ProcessId:
        """Who is next to a member in the ring."""
        return self.view.members[(self.ranks[member] + 1) % len(self.ranks)]

    def _on_token(self, sender: ProcessId, token: Token) -> None:
        if self._token is not None or self._number_next is not None:
            raise PeerFault(f"{sender} passes a second token to {self.me}")
        if token.number < self.position_next:
            raise PeerFault(f"{sender} passes a token for {token.number}; {self.position_next} is next")
        self._token = token
        self._accept_token()

    def _accept_token(self) -> None:
        """Take the token if it is here, and everything below its number as well."""
        if self._token is not None and self._token.number == self.position_next:
            self._number_next, self._token = self._token.number, None

    def _pass_on(self, now: int) -> None:
        """It is the turn of the next member in the ring, if there is another one."""
        if self._others:
            self._pass_token(self._others[0], now)

    def _pass_token(self, to: ProcessId, now: int) -> None:
        assert to != self.me and self._number_next is not None
        self.send(to, self._token_with(self._number_next, now))
        self._number_next = None

    def _reachable(self) -> list[ProcessId]:
        """The others along the ring, without those to whom the link is full."""
        return [member for member in self._others if member not in self.blocked]

    @abstractmethod
    def _token_with(self, number: int, now: int) -> Token:
        """The token as this member leaves it."""


class TokenRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a member has for the token: the level of the first of it, or `NOTHING`.

    Of two wishes of a member the one with the higher number counts.
    """

    number: Number = 0
    level: Annotated[int, msgspec.Meta(ge=NOTHING, le=CONTROL)] = NOTHING

    def __str__(self) -> str:
        return "nothing" if self.level == NOTHING else f"level {self.level}"


TokenRequestsOfAll = Annotated[tuple[TokenRequest, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class RequestToken(Packet, frozen=True, tag="wanted"):
    """From a member without the token to all: I have something for it."""

    wish: TokenRequest


class TokenRequests:
    """What each member has for the token, as far as this one knows."""

    def __init__(self, me: ProcessId, view: View) -> None:
        self._me = me
        self._of = dict.fromkeys(view.members, TokenRequest())

    def of_all(self) -> tuple[TokenRequest, ...]:
        """All of them, for the token to take along."""
        return tuple(self._of.values())

    def first_with_room(self, members: Iterable[ProcessId], grants: Grants) -> ProcessId | None:
        """The first of these members that has something for the token for which there is room."""
        for member in members:
            level = self._of[member].level
            if level != NOTHING and grants.of_level(level) > 0:
                return member
        return None

    def state(self, level: int) -> None:
        """This member gives the token away, and has this left for it."""
        self._of[self._me] = TokenRequest(self._of[self._me].number + 1, level)

    def renewed(self, level: int) -> TokenRequest | None:
        """What to say if this member has something for the token, unless it has said as much before.

        It says so again if something has come for which there may be more room.
        """
        said = self._of[self._me].level
        if level == NOTHING or (said != NOTHING and class_of(level) <= class_of(said)):
            return None
        self.state(level)
        return self._of[self._me]

    def learn(self, member: ProcessId, wish: TokenRequest) -> None:
        """Note what a member has, unless something later is known: the token may have been faster."""
        if wish.number > self._of[member].number:
            self._of[member] = wish

    def learn_all(self, sender: ProcessId, wishes: tuple[TokenRequest, ...]) -> None:
        """Note what the token has taken along."""
        if len(wishes) != len(self._of):
            raise PeerFault(f"{sender} passes a token with {len(wishes)} wishes")
        for member, wish in zip(self._of, wishes, strict=True):
            if member == self._me and wish.number > self._of[member].number:
                raise PeerFault(f"{sender} passes a token with a wish that {member} never had")
            self.learn(member, wish)
