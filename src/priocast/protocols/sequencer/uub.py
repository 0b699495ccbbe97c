"""Fixed sequencer, unicast-unicast-broadcast: members get numbers from the sequencer, and broadcast.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among the requests and
    among the messages of each sender, Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: three hops and n + 1 frames a message (a request, a grant, n - 1 copies), shared by all messages of a
    frame; messages go directly from their sender to their destinations. One report of consumption per
    member and quarter of a window.
Orders: the sequencer decides whose turn it is, each sender which of its messages takes the turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sequencer's queue of number requests (priority sequencing) and in the sender's outgoing
    queue.
Reference: the techniques paper, sections 5.1 and 6.1.
Diverges: as in `sequencer-ub`, numbers are granted only as far as every member has room, so that requests
    wait. A number is bound late: not to the message that it was requested for, but to the most urgent one
    that its sender has when it sends; the number requested for that one then serves another message. A
    further request for the same level joins the member's request that waits, so that numbers come in few
    pieces, and all pieces of a turn in one packet for each member. Grants are used in the order of their
    numbers, or FIFO among equals would break. Numbers are never returned, so a sender requests no more than
    it has messages, and never has fewer later. The window in bytes counts what was requested until the
    messages arrive. If the view ends, the first number without a message ends the order, and messages with
    later numbers are sent again.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.coordinated import check_role
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.numbering.base import NumberingProtocol
from priocast.protocols.numbering.packets import Numbered, NumberGrant, NumberRequest, RequestNumbers
from priocast.protocols.numbering.requests import NumberReservations


class SequencerUub(NumberingProtocol[Numbered]):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-uub"
    PACKETS = (RequestNumbers, NumberGrant, Numbered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        reservations = NumberReservations(view, options)
        super().__init__(me, view, options, position, reservations, reports_to=view.coordinator)
        self._sequencer = view.coordinator
        self._number_next = position

    def on_turn(self, event: Turn, now: int) -> None:
        self._request_numbers()
        if self.me == self._sequencer:
            self._grant_numbers()
        self._broadcast_numbered()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Numbered() as numbered:
                self._on_numbered(event.sender, numbered, event.packet_id)
            case RequestNumbers(requests=requests):
                self._on_request(event.sender, requests, now)
            case NumberGrant() as grant:
                self._on_grant(event.sender, grant)
            case Consumed(total=total, window=window):
                check_role("sequencer", self.me, self._sequencer, event.sender)
                self._giver.reservations.granted(event.sender, total, window)

    # Sender

    def _request_numbers(self) -> None:
        if self._sequencer not in self.blocked and (requests := self._requester.take_requests()):
            self.send(self._sequencer, RequestNumbers(requests))

    def _on_grant(self, giver: ProcessId, grant: NumberGrant) -> None:
        if giver != self._sequencer:
            raise PeerFault(f"{giver} grants numbers; only {self._sequencer} may")
        self._requester.granted(giver, grant)

    def _broadcast_numbered(self) -> None:
        """Bind the granted numbers, in their order, to the most urgent messages that there are now."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self._requester:
                return
            position, batches, numbers = self._requester.bind_frame(self.outgoing, self.in_flight)
            self.send_all(Numbered(position, batches, numbers.bottleneck))
        self.more_to_do()

    # Sequencer

    def _on_request(self, sender: ProcessId, requests: tuple[NumberRequest, ...], now: int) -> None:
        check_role("sequencer", self.me, self._sequencer, sender)
        for request in requests:
            self._giver.request(sender, request, now)

    def _grant_numbers(self) -> None:
        for member, grant in self._giver.grant(self._number_next, self.blocked):
            self.send(member, grant)
        self._number_next = self._giver.position_end
        if self._giver.cut_short:
            self.more_to_do()

    # Destination

    def _on_numbered(self, sender: ProcessId, numbered: Numbered, packet_id: PacketId) -> None:
        if self.me == self._sequencer and numbered.position >= self._number_next:
            raise PeerFault(f"{sender} uses numbers from {numbered.position} on, which it was not granted")
        self._keep_numbered(sender, numbered, packet_id)
        self._append_next()

    def _append_next(self) -> None:
        """Append the messages that have the next numbers; the rest waits for those before it."""
        while (found := self._ahead.take(self.position_next)) is not None:
            numbered, packet_id = found
            self.depends_on(packet_id)
            is_bottleneck = numbered.bottleneck == self.me.name
            for batch in numbered.batches:
                self._validator.ordered(batch)
                if self.me == self._sequencer:
                    self._giver.reservations.ordered(batch)
                self.append_ordered((batch,), is_bottleneck)
