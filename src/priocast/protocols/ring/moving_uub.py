"""Moving sequencer, unicast-unicast-broadcast: members ask whoever has the token for numbers, and broadcast.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among those who ask and
    among the messages of each sender, Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: three hops and n + 1 frames a message (an ask, a grant, n - 1 copies) and one for the token, shared by
    all messages of a turn; messages pass nobody but their sender and their destinations. An ask that comes
    too late for the token waits for up to a round, after n - 1 frames that ask for it. Per member and
    quarter of a window one report of consumption to all.
Orders: the holder of the token decides whose turn it is, each sender which of its messages takes the turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the holder's queue of asks (priority sequencing) and in the sender's outgoing queue.
    Waiting goes on counting when an ask is handed over.
Reference: the techniques paper, sections 5.2 and 6.1.
Diverges: as in `sequencer-uub`, a number is bound late, to the most urgent message that its sender has when
    it sends. The token is accepted only when all messages below its number are here: so a sender has used
    the numbers that one holder gave it before it gets any from another, and uses them in their order. The
    token takes along the most urgent asks, as many as could be served at one visit, and the rest stays
    where it is. It does not go round for ever: it moves when its holder has given out numbers, or has no
    ask that there is room for and another member has. As in `sequencer-ub`, numbers are given out only as
    far as every member has room.
"""

from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import FRAME_BATCHES_MAX, Consumed
from priocast.protocols.numbering.base import (
    NumberedBase,
    NumberGrant,
    NumberingProtocol,
    Numbers,
    RequestNumbers,
)
from priocast.protocols.numbering.requests import NumberRequest, NumberRequestQueue, NumberReservations
from priocast.protocols.ring.base import (
    MEMBERS_MAX,
    NOTHING,
    Number,
    RequestToken,
    RingProtocol,
    SharedGrants,
    Token,
    TokenRequests,
    TokenRequestsOfAll,
)

Rank = Annotated[int, msgspec.Meta(ge=0, lt=MEMBERS_MAX)]


class Numbered(NumberedBase, frozen=True, tag="numbered"):
    """From a member to all: these have the places from `position` on, as the `giver` granted, a rank."""

    giver: Rank = 0


class PendingNumberRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a member (a rank) has asked for and not got yet, and for how long that has waited (ns)."""

    asker: Rank
    want: NumberRequest
    waited: Number

    def __str__(self) -> str:
        return f"{self.want} for rank {self.asker} for {self.waited} ns"


class LadenToken(Token, frozen=True, tag="token"):
    """From the holder to another member: it is your turn, and these are asks that wait."""

    wishes: TokenRequestsOfAll
    asks: Annotated[tuple[PendingNumberRequest, ...], msgspec.Meta(max_length=FRAME_BATCHES_MAX)]


class MovableNumberRequests(NumberRequestQueue):
    """NumberRequestQueue that may be handed over, with the time at which they came."""

    def take_whole(self) -> tuple[ProcessId, NumberRequest, int]:
        """Give out the ask that is next: whose it is, what is asked for, and since when."""
        ask = self._heap[0][2]
        count, size = self.take(ask.count, ask.size)
        return ask.sender, NumberRequest(ask.level, count, size), ask.since


class SharedNumberReservations(NumberReservations, SharedGrants):
    """Numbers that any member may have given out."""

    def placed(self, batch: Batch) -> None:
        given_elsewhere = self._came + batch.count - self._placed
        if given_elsewhere > 0:
            self.reserve(given_elsewhere, 0)
        super().placed(batch)


class MovingUub(RingProtocol, NumberingProtocol):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "moving-uub"
    PACKETS = (RequestNumbers, NumberGrant, Numbered, RequestToken, LadenToken, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._requests: MovableNumberRequests = MovableNumberRequests(options.policy)
        self._grants: SharedNumberReservations = SharedNumberReservations(view, options)
        self._token_requests = TokenRequests(me, view)
        self._holder = view.coordinator

    def on_turn(self, event: Turn, now: int) -> None:
        self._ask(self._holder if self._number_next is None else self.me)
        if self._number_next is not None:
            self._visit(self._number_next, now)
        elif self._token is None and (wish := self._token_requests.renewed(self._wish())) is not None:
            self.send_each(RequestToken(wish))
        self._send_numbered()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Numbered() as numbered:
                self._on_numbered(event.sender, numbered, event.packet_id)
                self._accept_token()
            case RequestNumbers(wants=wants):
                self._on_ask(event.sender, wants, now)
            case NumberGrant() as grant:
                self._on_grant(event.sender, grant)
            case LadenToken() as token:
                self._on_laden_token(event.sender, token, now)
            case RequestToken(wish=wish):
                self._token_requests.learn(event.sender, wish)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _numbered(self, position: int, batches: tuple[Batch, ...], numbers: Numbers) -> Numbered:
        return Numbered(position, batches, numbers.bottleneck, self.ranks[numbers.giver])

    # Holder

    def _wish(self) -> int:
        return self._requests.head()[1] if self._requests else NOTHING

    def _on_laden_token(self, sender: ProcessId, token: LadenToken, now: int) -> None:
        self._on_token(sender, token)
        self._token_requests.learn_all(sender, token.wishes)
        for ask in token.asks:
            if ask.asker >= len(self.ranks):
                raise PeerFault(f"{sender} hands over an ask of rank {ask.asker}, which no member has")
            self._ask_waits(self.view.members[ask.asker], ask.want, now - ask.waited)

    def _visit(self, number: int, now: int) -> None:
        """Give out what may be given out at a visit; who can give nothing lets those go on who can."""
        self._number_next = self._give(number)
        if self._number_next != number:
            self._pass_on(now)
        elif not (self._requests and self.blocked):
            to = self._token_requests.first_with_room(self._reachable(), self._grants)
            if to is not None:
                self._pass_token(to, now)

    def _token_with(self, number: int, now: int) -> LadenToken:
        asks: list[PendingNumberRequest] = []
        room = self._grants.window
        while self._requests and room > 0 and len(asks) < FRAME_BATCHES_MAX:
            asker, want, since = self._requests.take_whole()
            self._asked_by[asker] -= want.count
            asks.append(PendingNumberRequest(self.ranks[asker], want, now - since))
            room -= want.count
        self._token_requests.state(self._wish())
        return LadenToken(number, self._token_requests.of_all(), tuple(asks))

    # Destination

    def _on_next(self, numbered: NumberedBase) -> None:
        assert isinstance(numbered, Numbered)
        if numbered.giver >= len(self.ranks):
            raise PeerFault(f"numbers were granted by rank {numbered.giver}, which no member has")
        self._holder = self._successor(self.view.members[numbered.giver])
