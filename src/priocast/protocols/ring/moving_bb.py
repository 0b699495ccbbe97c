"""Moving sequencer, broadcast-broadcast: members broadcast, and whoever has the token broadcasts the order.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at whoever has the token,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and 2 (n - 1) frames a message and one for the token, shared by all messages of a turn; only
    one of them carries the message. Per member and quarter of a window one report of consumption to all.
Orders: the holder of the token, by references to what it has received; each member in its turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the holder's queue of what has no place (priority
    sequencing). Every member has that queue, so the token need not take it along.
Reference: the techniques paper, sections 5.2 and 6.1.
Diverges: taken at its word, the paper's token orders a message twice: by a member that has it and does not
    know yet that it was ordered. Here the token is accepted only when all places below its number are known
    here, and what has a place is forgotten. The token does not go round for ever: it moves when its holder
    has ordered something, and rests otherwise. As in `sequencer-ub`, a message gets its place only when every
    member has room for it. Batches move, not messages.
"""

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, reference_to
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import Batches, BottleneckName, Consumed, References
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.ring.base import Token
from priocast.protocols.ring.moving import MovingSequencer, Places
from priocast.protocols.ring.pending_queue import PendingQueue


class Data(Packet, frozen=True, tag="data"):
    """From a member to all: these are to be ordered."""

    TO_ALL = True

    batches: Batches


class Order(Places, frozen=True, tag="order"):
    """From the holder to all: these are next in the order.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    references: References
    bottleneck: BottleneckName = ""


class BareToken(Token, frozen=True, tag="token"):
    """From the holder to the next member: it is your turn."""


class MovingBb(MovingSequencer):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "moving-bb"
    PACKETS = (Data, Order, BareToken, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position, PendingQueue(options.policy))
        self._messages = ReferencedMessages()
        # A sender may know places of its messages that this member does not know yet: those in the window.
        self._validator = SubmissionValidator(view, options.submit_max + WINDOW_MAX)

    def on_turn(self, event: Turn, now: int) -> None:
        self._broadcast()
        if self._number_next is not None and not self.blocked and self._order(self._pending):
            self._pass_on(now)

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches):
                self._on_data(event.sender, batches, event.packet_id, now)
            case Order() as order:
                self._on_places(event.sender, order, event.packet_id)
            case BareToken() as token:
                self._on_token(event.sender, token)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _broadcast(self) -> None:
        self.send_own(None, Data)

    # Holder

    def _places(self, position: int, batches: tuple[Batch, ...], bottleneck: str) -> Order:
        return Order(position, tuple(map(reference_to, batches)), bottleneck)

    def _token_with(self, number: int, now: int) -> BareToken:
        return BareToken(number)

    # Destination

    def _on_data(self, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.came(batch, packet_id)
            self._pending.put(batch, now)
        self._place_next()
        self._accept_token()

    def _on_next(self, orderer: ProcessId, places: Places, packet_id: PacketId) -> None:
        assert isinstance(places, Order)
        for reference in places.references:
            self._messages.named(
                OrderedReference(reference, orderer, packet_id, places.bottleneck == self.me.name)
            )
        self._place_next()

    def _place_next(self) -> None:
        """Place what is next in the order and has come; the rest waits for its turn, or for its messages."""
        for place, packet_id, batches in self._messages.next_ordered():
            self.depends_on(place.packet_id)
            self.depends_on(packet_id)
            self._validator.placed(place.reference)
            self._place(place.orderer, batches, place.held)
