"""Fixed sequencer, broadcast-broadcast: members broadcast, and the sequencer broadcasts the order.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the sequencer,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and 2 (n - 1) frames a message, shared by all messages of a frame; only one of the two
    carries it, so that the messages of all members leave from as many members. One report of consumption
    per member and quarter of a window.
Orders: the sequencer, by references to what it has received.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the sequencer's incoming queue (priority sequencing).
Reference: the techniques paper, sections 5.1 and 6.1.
Diverges: as `sequencer-ub`, the sequencer numbers a message only when every member has room for it, so that
    the backlog waits in its queue, and its loop waits for more instead of ending. A destination keeps the
    messages that have no place yet and the places whose messages have not come, and goes on in the order of
    the places. If the view ends, the first place whose message nobody has ends the order, and what has a
    place behind it is sent again. Batches move, not messages.
"""

from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference, reference_to
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import Batches, BottleneckName, Consumed, References
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.sequencer.base import QueueingSequencer


class Data(Packet, frozen=True, tag="data"):
    """From a member to all: these are to be ordered."""

    TO_ALL = True

    batches: Batches


class Order(Packet, frozen=True, tag="order"):
    """From the sequencer to all: these are next in the order.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    position: Annotated[int, msgspec.Meta(ge=0)]
    references: References
    bottleneck: BottleneckName = ""


class SequencerBb(QueueingSequencer):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-bb"
    PACKETS = (Data, Order, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._messages = ReferencedMessages()
        self._places_end = position
        self._named_next: dict[tuple[ProcessId, int], int] = {}
        # A sender may know places of its messages that this member does not know yet: those in the window.
        self._validator = SubmissionValidator(view, options.submit_max + WINDOW_MAX)

    def on_turn(self, event: Turn, now: int) -> None:
        self._broadcast()
        if self.me == self._sequencer:
            self._order()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches):
                self._on_data(event.sender, batches, event.packet_id, now)
            case Order() as order:
                self._on_order(event.sender, order, event.packet_id)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _broadcast(self) -> None:
        self.send_own(None, Data)

    # Sequencer

    def _ordered(self, position: int, batches: tuple[Batch, ...], bottleneck: str) -> Order:
        return Order(position, tuple(map(reference_to, batches)), bottleneck)

    # Destination

    def _on_data(self, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.came(batch, packet_id)
            if self.me == self._sequencer:
                self._incoming.put(batch, now)
        self._place_next()

    def _on_order(self, sender: ProcessId, order: Order, packet_id: PacketId) -> None:
        if sender != self._sequencer or order.position != self._places_end:
            raise PeerFault(
                f"{sender} orders position {order.position}; "
                f"expected {self._places_end} from {self._sequencer}"
            )
        for reference in order.references:
            self._check_named(sender, reference)
            self._messages.named(
                OrderedReference(reference, sender, packet_id, order.bottleneck == self.me.name)
            )
            self._places_end += reference.count
        self._place_next()

    def _check_named(self, sender: ProcessId, reference: Reference) -> None:
        stream = (reference.sender, reference.level)
        expected = self._named_next.get(stream, reference.first)
        if reference.sender not in self.ranks or reference.first != expected:
            raise PeerFault(f"{sender} orders {reference}, where number {expected} of a member is next")
        self._named_next[stream] = expected + reference.count

    def _place_next(self) -> None:
        """Place what is next in the order and has come; the rest waits for its turn, or for its messages."""
        for place, packet_id, batches in self._messages.next_ordered():
            self.depends_on(place.packet_id)
            self.depends_on(packet_id)
            self._validator.placed(place.reference)
            self.append_ordered(batches, place.held)
