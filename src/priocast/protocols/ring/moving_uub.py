"""Moving sequencer, unicast-unicast-broadcast: members get numbers from the holder, and broadcast.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among the requests and
    among the messages of each sender, Bounded overtaking by the chosen starvation policy and one round of
    the token: what it cannot carry waits until it is back. Plain: FIFO order.
Costs: three hops and n + 1 frames a message (a request, a grant, n - 1 copies) and one for the token, shared
    by all messages of a turn; messages go directly from their sender to their destinations. A request that
    arrives after the token has left waits for up to a round, after n - 1 frames that request the token. Per
    member and quarter of a window one report of consumption to all.
Orders: the holder of the token decides whose turn it is, each sender which of its messages takes the turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the holder's queue of number requests (priority sequencing) and in the sender's outgoing
    queue. The waiting time of a request continues to count when the token carries it.
Reference: the techniques paper, sections 5.2 and 6.1.
Diverges: as in `sequencer-uub`, a number is bound late, to the most urgent message that its sender has when
    it sends. The token is accepted only when all messages below its position are here: so a sender has used
    the numbers that one holder granted before it gets any from another, and uses them in their order. The
    token carries the most urgent requests, as many as could be served in one visit, and the rest stays
    where it is. It does not circulate for ever: it moves when its holder has granted numbers, or has no
    request that there is room for and another member has. As in `sequencer-ub`, numbers are granted only as
    far as every member has room.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX, FRAMES_PER_TURN
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.numbering.base import NumberingProtocol
from priocast.protocols.numbering.packets import NumberGrant, RequestNumbers
from priocast.protocols.numbering.requests import NumberReservations
from priocast.protocols.ring.moving_packets import NumberedByHolder, PendingRequest, TokenWithNumberRequests
from priocast.protocols.ring.ring import WAITED_NS_MAX, Ring
from priocast.protocols.ring.token_packets import NOTHING, RequestToken
from priocast.protocols.ring.token_requests import TokenRequests


class SharedNumberReservations(NumberReservations):
    """Reservations for numbers that any member may have granted."""

    def __init__(self, view: View, options: OrderingOptions) -> None:
        super().__init__(view, options, alone=False)

    def ordered(self, batch: Batch) -> None:
        granted_elsewhere = self._used_count + batch.count - self.ordered_count
        if granted_elsewhere > 0:
            self.reserve(granted_elsewhere, 0)
        super().ordered(batch)


class MovingUub(NumberingProtocol[NumberedByHolder]):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "moving-uub"
    PACKETS = (
        RequestNumbers,
        NumberGrant,
        NumberedByHolder,
        RequestToken,
        TokenWithNumberRequests,
        Consumed,
    )

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position, SharedNumberReservations(view, options))
        self._ring = Ring(me, view, position)
        self._token_requests = TokenRequests(me, view)
        self._holder = view.coordinator

    def on_turn(self, event: Turn, now: int) -> None:
        self._request_numbers()
        if self._ring.position is not None:
            self._visit(self._ring.position, now)
        elif self._ring.is_elsewhere:
            self._request_token()
        self._broadcast_numbered()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case NumberedByHolder() as numbered:
                self._on_numbered(event.sender, numbered, event.packet_id)
            case RequestNumbers(requests=requests):
                for number_request in requests:
                    self._giver.request(event.sender, number_request, now)
            case NumberGrant() as grant:
                self._requester.granted(event.sender, grant)
            case TokenWithNumberRequests() as token:
                self._on_token(event.sender, token, now)
            case RequestToken(request=token_request):
                self._token_requests.learn(event.sender, token_request)
            case Consumed(total=total, window=window):
                self._giver.reservations.granted(event.sender, total, window)

    # Sender

    def _request_numbers(self) -> None:
        holder = self._holder if self._ring.position is None else self.me
        if holder not in self.blocked and (requests := self._requester.take_requests()):
            self.send(holder, RequestNumbers(requests))

    def _broadcast_numbered(self) -> None:
        """Bind the granted numbers, in their order, to the most urgent messages that there are now."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self._requester:
                return
            position, batches, numbers = self._requester.bind_frame(self.outgoing, self.in_flight)
            giver = self.ranks[numbers.giver]
            self.send_all(NumberedByHolder(position, batches, numbers.bottleneck, giver))
        self.more_to_do()

    # A member that others believe to be the holder

    def _request_token(self) -> None:
        request = self._token_requests.next_own(self._pending_level())
        if request is not None:
            self.send_each(RequestToken(request))

    def _pending_level(self) -> int:
        return self._giver.requests.head()[1] if self._giver.requests else NOTHING

    # Holder

    def _on_token(self, sender: ProcessId, token: TokenWithNumberRequests, now: int) -> None:
        self._ring.receive(sender, token, self.position_next)
        self._token_requests.learn_all(sender, token.requests)
        for pending in token.pending:
            if pending.requester >= len(self.ranks):
                raise PeerFault(f"{sender} passes on a request of rank {pending.requester}: no such member")
            since = now - min(pending.waited, WAITED_NS_MAX)
            self._giver.request(self.view.members[pending.requester], pending.request, since)
        self._ring.accept(self.position_next)

    def _visit(self, position: int, now: int) -> None:
        """Grant one visit's worth; if nothing can be granted, pass the token to a member that can grant."""
        to: ProcessId | None = None
        for member, grant in self._giver.grant(position, self.blocked):
            self.send(member, grant)
        if self._giver.cut_short:
            self.more_to_do()
        self._ring.position = self._giver.position_end
        if self._ring.position > position:
            to = next(iter(self._ring.others), None)
        elif not (self._giver.requests and self.blocked):
            reachable = self._ring.reachable(self.blocked)
            to = self._token_requests.first_with_room(reachable, self._giver.reservations)
        if to is not None:
            self.send(to, self._release_token(now))

    def _release_token(self, now: int) -> TokenWithNumberRequests:
        pending: list[PendingRequest] = []
        room = self._giver.reservations.window
        while self._giver.requests and room > 0 and len(pending) < FRAME_BATCHES_MAX:
            requester, request, since = self._giver.take_request()
            pending.append(PendingRequest(self.ranks[requester], request, now - since))
            room -= request.count
        self._token_requests.update_own(self._pending_level())
        return TokenWithNumberRequests(self._ring.release(), self._token_requests.of_all(), tuple(pending))

    # Destination

    def _on_numbered(self, sender: ProcessId, numbered: NumberedByHolder, packet_id: PacketId) -> None:
        self._keep_numbered(sender, numbered, packet_id)
        self._append_next()
        self._ring.accept(self.position_next)

    def _append_next(self) -> None:
        """Append the messages that have the next numbers; the rest waits for those before it."""
        while (found := self._ahead.take(self.position_next)) is not None:
            numbered, packet_id = found
            if numbered.giver >= len(self.ranks):
                raise PeerFault(f"numbers were granted by rank {numbered.giver}: no such member")
            self.depends_on(packet_id)
            self._holder = self._ring.successor(self.view.members[numbered.giver])
            is_bottleneck = numbered.bottleneck == self.me.name
            for batch in numbered.batches:
                self._validator.ordered(batch)
                self._giver.reservations.ordered(batch)
                self.append_ordered((batch,), is_bottleneck)
