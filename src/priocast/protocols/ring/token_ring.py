"""Privilege based: a token moves along a ring, and only its holder sends.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at each sender, Bounded
    overtaking within a sender's queue by the chosen starvation policy. Plain: FIFO order.
Costs: one hop and n - 1 frames a message at the holder, shared by all messages of a frame. Elsewhere it first
    takes n - 1 frames to request the token, and one to get it: three hops, and at most one visit at each of
    the others. Per member and quarter of a window one report of consumption to all.
Orders: the sender, while it has the token.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending), and in the room that the window reserves.
    Between members the ring decides: the holder's routine messages go before urgent ones of another member,
    as many of them as `burst` and the window allow in one visit. A holder without room lets those members go
    first that have messages so urgent that there is room for them.
Reference: the techniques paper, section 5.3 and figure 3 (all messages in a visit); the cost paper, figure 2
    (one message in a visit: `burst` = 1).
Diverges: the paper's token never rests. Here it stays where it was used last until a member requests it, and
    then moves to the next member along the ring that has requested it. A visit ends after `burst` messages,
    or else after some frames or when the window is full: a member with a steady supply would keep the token
    for ever. The token is accepted only when everything below its position was received, so that the holder
    knows how much room there is. Batches move, not messages.
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.frames import fill_frame
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Consumed, Ordered
from priocast.protocols.flow.reorder_buffer import ReorderBuffer
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.ring.ring import Ring
from priocast.protocols.ring.token_packets import NOTHING, RequestToken, TokenWithRequests
from priocast.protocols.ring.token_requests import TokenRequests

#: A visit that uses all of the holder's credit leaves the others idle: six frames were a quarter faster than
#: eight, and faster than four.
_FRAMES_PER_VISIT = 6


class TokenRing(FlowControlledProtocol):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "token-ring"
    PRIORITIES_ACT = "sending"
    PACKETS = (RequestToken, TokenWithRequests, Ordered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._ring = Ring(me, view, position)
        self._token_requests = TokenRequests(me, view)
        # holder
        self._visit_left = 0
        self._grants = Grants(view, options, alone=False)
        # destination
        self._ahead: ReorderBuffer[tuple[ProcessId, Ordered, PacketId]] = ReorderBuffer()
        self._validator = SubmissionValidator(view, options.submit_max)

    @property
    def idle(self) -> bool:
        is_requested = self._ring.position is not None and self._requesting()
        return not (self.outgoing.count or self.in_flight.count or is_requested)

    def inspect(self, now: int) -> ProtocolInspection:
        inspection = super().inspect(now)
        if self._ring.position is None:
            return inspection
        return msgspec.structs.replace(inspection, bottleneck=self._bottleneck())

    def on_turn(self, event: Turn, now: int) -> None:
        if self._ring.position is not None:
            self._visit(self._ring.position)
        elif self._ring.is_elsewhere:
            self._request_token()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_ordered(event.sender, ordered, event.packet_id)
            case TokenWithRequests() as token:
                self._on_token(event.sender, token)
            case RequestToken(request=request):
                self._token_requests.learn(event.sender, request)
            case Consumed(total=total, window=window):
                self._grants.granted(event.sender, total, window)

    # Sender

    def _request_token(self) -> None:
        """Request the token, and again if a message has arrived for which there may be more room."""
        request = self._token_requests.next_own(self._own_level())
        if request is not None:
            self.send_each(RequestToken(request))

    def _own_level(self) -> int:
        return self.outgoing.head_level if self.outgoing.count else NOTHING

    def _requesting(self) -> list[ProcessId]:
        """The others that request the token, along the ring."""
        return self._token_requests.requesting(self._ring.others)

    # Holder

    def _on_token(self, sender: ProcessId, token: TokenWithRequests) -> None:
        self._ring.receive(sender, token, self.position_next)
        self._token_requests.learn_all(sender, token.requests)
        self._ring.accept(self.position_next)

    def _visit(self, position: int) -> None:
        """Send one visit's worth of own messages; then pass the token to the next member that requests it."""
        requesting = self._requesting()
        if self.outgoing.count:
            if self.blocked:
                return
            cut_short = self._send(position, alone=not requesting)
            if self._ring.position == position:
                # A holder without room keeps the token: it would circulate until there is room.
                requesting = [member for member in requesting if self._has_room(member)]
            elif cut_short and not requesting:
                self.more_to_do()
        for member in requesting:
            if member not in self.blocked:
                self._pass_token(member)
                return

    def _has_room(self, member: ProcessId) -> bool:
        return self._grants.room(self._token_requests.level_of(member)) > 0

    def _send(self, position: int, alone: bool) -> bool:
        """Send for one visit, or for several if no other member requests the token (`alone`).

        Return whether the turn was too short for all messages that may be sent.
        """
        burst = self.options.burst or WINDOW_MAX
        self._visit_left = burst
        for _ in range(_FRAMES_PER_VISIT):
            batches = fill_frame(self.outgoing, self._room, self._sent)
            if not batches:
                return False
            bottleneck = self._bottleneck()
            self.send_all(Ordered(position, batches, bottleneck.name if bottleneck else ""))
            position += sum(batch.count for batch in batches)
            self._ring.position = position
            if alone:
                self._visit_left = burst
        return True

    def _room(self, level: int) -> int:
        return min(self._visit_left, self.in_flight.room(level), self._grants.room(level))

    def _sent(self, batch: Batch) -> None:
        self._visit_left -= batch.count
        self.in_flight.sent(batch)
        self._grants.ordered(batch)

    def _bottleneck(self) -> ProcessId | None:
        """The member whose grant the most urgent message that any member has to send waits for."""
        levels = [self._token_requests.level_of(member) for member in self._requesting()]
        if self.outgoing.count:
            levels.append(self.outgoing.head_level)
        return self._grants.bottleneck(max(levels)) if levels else None

    def _pass_token(self, to: ProcessId) -> None:
        self._token_requests.update_own(self._own_level())
        self.send(to, TokenWithRequests(self._ring.release(), self._token_requests.of_all()))

    # Destination

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        self._ahead.check(sender, ordered.position, self.position_next, self.position_next)
        self._ring.check_may_order(sender, ordered.position, ordered.position_end)
        self._ahead.put(ordered.position, (sender, ordered, packet_id))
        while (found := self._ahead.take(self.position_next)) is not None:
            self._append(*found)
        self._ring.accept(self.position_next)

    def _append(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        """All messages before these are ordered."""
        self.depends_on(packet_id)
        is_bottleneck = ordered.bottleneck == self.me.name
        for batch in ordered.batches:
            self._validator.check(sender, batch)
            self._validator.ordered(batch)
            if sender != self.me:
                self._grants.ordered(batch)
            self.append_ordered((batch,), is_bottleneck)
