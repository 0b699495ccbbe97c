"""Privilege based: a token goes round, and only who has it sends.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at each sender, Bounded
    overtaking within a sender's queue by the chosen starvation policy. Plain: FIFO order.
Costs: one hop and n - 1 frames a message at the holder, shared by all messages of a frame. Elsewhere it first
    takes n - 1 frames to ask for the token, and one to get it: three hops, and at most one visit at each of
    the others. Per member and quarter of a window one report of consumption to all.
Orders: the sender, while it has the token.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending), and in the room that the window reserves.
    Between members it is the ring that decides: the holder's routine messages go before what is urgent at
    another member, as many of them as `burst` and the window allow at one visit. A holder without room lets
    those go first who have something so urgent that there is room for it.
Reference: the techniques paper, section 5.3 and figure 3 (all messages at a visit); the cost paper, figure 2
    (one message at a visit: `burst` = 1).
Diverges: the paper's token never rests. Here it stays where it was used last until somebody asks for it, and
    then goes to the next member along the ring that has asked. A visit ends after `burst` messages, or else
    after some frames or when the window is full: who is refilled all the time would keep the token for ever.
    The token is accepted only when everything below its number was received, so that the holder knows
    how much room there is. Batches move, not messages.
"""

from typing import Annotated, NamedTuple

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.priority import class_of
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.grants import Batches, BottleneckName, Consumed, Grants, fill_frame
from priocast.protocols.flow.submission_validator import SubmissionValidator

_NOTHING = -1
_MEMBERS_MAX = 1024

#: A visit that takes all that the holder may have under way leaves the others idle: six frames were a quarter
#: faster than eight, and faster than four.
_FRAMES_PER_VISIT = 6

Number = Annotated[int, msgspec.Meta(ge=0)]
Level = Annotated[int, msgspec.Meta(ge=_NOTHING, le=CONTROL)]


class RequestToken(Packet, frozen=True, tag="wanted"):
    """From a member without the token to all: I wish to send something of this level; my last wish counts."""

    number: Number
    level: Level


class Token(Packet, frozen=True, tag="token"):
    """From the holder to the next one: the first message that you send has the place `position`.

    What everybody wants to send, as far as it is known, goes along: number and level of the wish, by rank.
    """

    position: Number
    numbers: Annotated[tuple[Number, ...], msgspec.Meta(max_length=_MEMBERS_MAX)]
    levels: Annotated[tuple[Level, ...], msgspec.Meta(max_length=_MEMBERS_MAX)]


class Ordered(Packet, frozen=True, tag="ordered"):
    """From the holder to all: these are at this place in the order.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    position: Number
    batches: Batches
    bottleneck: BottleneckName = ""

    @property
    def position_next(self) -> int:
        """The place after the last message."""
        return self.position + sum(batch.count for batch in self.batches)


class _TokenRequest(NamedTuple):
    """The level of what a member has to send, or `_NOTHING`; a later wish has a higher number."""

    number: int = 0
    level: int = _NOTHING


class TokenRing(FlowControlledProtocol):
    """A member's part in the protocol; the view's coordinator makes the token."""

    NAME = "token-ring"
    PRIORITIES_ACT = "sending"
    PACKETS = (RequestToken, Token, Ordered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        rank = self.ranks[me]
        self._ring = view.members[rank + 1 :] + view.members[:rank]
        self._token_requests = dict.fromkeys(view.members, _TokenRequest())
        # holder
        self._number_next = position if me == view.coordinator else None
        self._token: Token | None = None
        self._visit_left = 0
        self._grants = Grants(view, options, alone=False)
        # destination
        self._early: dict[int, tuple[ProcessId, Ordered, tuple[int, int]]] = {}
        self._validator = SubmissionValidator(view, options.submit_max)

    @property
    def idle(self) -> bool:
        asked = self._number_next is not None and self._asking()
        return not (self.outgoing or self.in_flight.count or asked)

    def bottleneck(self) -> ProcessId | None:
        """The holder says it for all: for whose grant the most urgent of what anybody wants to send waits."""
        if self._number_next is None:
            return None
        levels = [self._token_requests[member].level for member in self._asking()]
        if self.outgoing:
            levels.append(self.outgoing.head_level())
        return self._grants.bottleneck(max(levels)) if levels else None

    def on_turn(self, event: Turn, now: int) -> None:
        if self._number_next is not None:
            self._visit(self._number_next)
        elif self._token is None:
            self._ask()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_ordered(event.sender, ordered, event.packet_id)
                self._accept_token()
            case Token() as token:
                self._on_token(event.sender, token)
                self._accept_token()
            case RequestToken(number=number, level=level):
                self._learn(event.sender, _TokenRequest(number, level))
            case Consumed(total=total, window=window):
                self._grants.granted(event.sender, total, window)

    # Who has something to send

    def _ask(self) -> None:
        """RequestNumbers for the token, and again if something has come for which there may be more room."""
        if not self.outgoing:
            return
        level, asked = self.outgoing.head_level(), self._token_requests[self.me]
        if asked.level == _NOTHING or class_of(level) > class_of(asked.level):
            self._token_requests[self.me] = _TokenRequest(asked.number + 1, level)
            self.send_each(RequestToken(asked.number + 1, level))

    def _learn(self, member: ProcessId, wish: _TokenRequest) -> None:
        """Note what a member wants, unless something later is known: the token may have been faster."""
        if wish.number > self._token_requests[member].number:
            self._token_requests[member] = wish

    def _asking(self) -> list[ProcessId]:
        """The others who want the token, along the ring."""
        return [member for member in self._ring if self._token_requests[member].level != _NOTHING]

    # Holder

    def _on_token(self, sender: ProcessId, token: Token) -> None:
        if self._token is not None or self._number_next is not None:
            raise PeerFault(f"{sender} passes a second token to {self.me}")
        if token.position < self.position_next:
            raise PeerFault(f"{sender} passes a token for {token.position}; {self.position_next} is next")
        if not len(token.numbers) == len(token.levels) == len(self._token_requests):
            raise PeerFault(f"{sender} passes a token without everybody's wishes")
        if token.numbers[self.ranks[self.me]] > self._token_requests[self.me].number:
            raise PeerFault(f"{sender} passes a token with a wish that {self.me} never had")
        self._token = token

    def _accept_token(self) -> None:
        """Take the token if it is here, and everything below its number as well."""
        if self._token is not None and self._token.position == self.position_next:
            wishes = map(_TokenRequest, self._token.numbers, self._token.levels)
            for member, wish in zip(self.view.members, wishes, strict=True):
                self._learn(member, wish)
            self._number_next = self._token.position
            self._token = None

    def _visit(self, number: int) -> None:
        """Send what may be sent at a visit; then it is somebody else's turn."""
        asking = self._asking()
        if self.outgoing:
            if self.blocked:
                return
            cut_short = self._send(number, alone=not asking)
            if self._number_next == number:
                # Who waits for room keeps the token: it would go round until room comes.
                asking = [member for member in asking if self._has_room(member)]
            elif cut_short and not asking:
                self.more_to_do()
        for member in asking:
            if member not in self.blocked:
                self._pass_token(member)
                return

    def _has_room(self, member: ProcessId) -> bool:
        return self._grants.of_level(self._token_requests[member].level) > 0

    def _send(self, position: int, alone: bool) -> bool:
        """Send for one visit, or for many if nobody else wants to; return whether the turn was too short."""
        burst = self.options.burst or WINDOW_MAX
        self._visit_left = burst
        for _ in range(_FRAMES_PER_VISIT):
            batches = fill_frame(self.outgoing, self._room, self._leaves)
            if not batches:
                return False
            bottleneck = self.bottleneck()
            self.send_all(Ordered(position, batches, bottleneck.name if bottleneck else ""))
            position += sum(batch.count for batch in batches)
            self._number_next = position
            if alone:
                self._visit_left = burst
        return True

    def _room(self, level: int) -> int:
        return min(self._visit_left, self.in_flight.room(level), self._grants.of_level(level))

    def _leaves(self, batch: Batch) -> None:
        self._visit_left -= batch.count
        self.in_flight.sent(batch)
        self._grants.placed(batch)

    def _pass_token(self, to: ProcessId) -> None:
        assert self._number_next is not None and to != self.me
        level = self.outgoing.head_level() if self.outgoing else _NOTHING
        self._token_requests[self.me] = _TokenRequest(self._token_requests[self.me].number + 1, level)
        numbers, levels = zip(*self._token_requests.values(), strict=True)
        self.send(to, Token(self._number_next, numbers, levels))
        self._number_next = None

    # Destination

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        position = ordered.position
        if position < self.position_next or position in self._early:
            raise PeerFault(f"{sender} orders position {position}; {self.position_next} is next")
        if sender != self.me and self._lacked_token(ordered):
            raise PeerFault(f"{sender} orders position {position} although {self.me} has the token")
        self._early[position] = sender, ordered, packet_id
        while self.position_next in self._early:
            self._place(*self._early.pop(self.position_next))

    def _lacked_token(self, ordered: Ordered) -> bool:
        """Whether somebody else sent this after the token had come here."""
        return self._number_next is not None or (
            self._token is not None and ordered.position_next > self._token.position
        )

    def _place(self, sender: ProcessId, ordered: Ordered, packet_id: tuple[int, int]) -> None:
        held = ordered.bottleneck == self.me.name
        self.depends_on(packet_id)
        for batch in ordered.batches:
            self._validator.check(sender, batch)
            self._validator.placed(batch)
            self.place(batch, held)
            if sender != self.me:
                self._grants.placed(batch)
