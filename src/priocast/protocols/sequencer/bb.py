"""Fixed sequencer, broadcast-broadcast: members broadcast, and the sequencer broadcasts the order.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the sequencer,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and 2 (n - 1) frames a message, shared by all messages of a frame; only one of the two
    carries the message, so the payloads of all members are sent by all members. One report of consumption
    per member and quarter of a window.
Orders: the sequencer, by references to what it has received.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the sequencer's incoming queue (priority sequencing).
Reference: the techniques paper, sections 5.1 and 6.1.
Diverges: as in `sequencer-ub`, the sequencer numbers a message only when every member has room for it, so
    that the backlog waits in its queue, and its loop waits for more instead of ending. A destination keeps
    the messages that have no position yet and the positions whose messages have not arrived, and proceeds in
    the order of the positions. If the view ends, the first position whose message is lost ends the order,
    and messages with later positions are sent again. Batches move, not messages.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference, reference_to
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.coordinated import CoordinatedProtocol
from priocast.protocols.flow.packets import Consumed, Data, Order
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages
from priocast.protocols.flow.submission_validator import SubmissionValidator


class SequencerBb(CoordinatedProtocol):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-bb"
    ROLE = "sequencer"
    PRIORITIES_ACT = "sequencing"
    PACKETS = (Data, Order, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._sequencer = view.coordinator
        self._messages = ReferencedMessages()
        self._positions_end = position
        self._number_expected: dict[tuple[ProcessId, int], int] = {}
        # A sender may know positions of its messages that this member does not know yet: those in the window.
        self._validator = SubmissionValidator(view, options.submit_max + WINDOW_MAX)

    def on_turn(self, event: Turn, now: int) -> None:
        self.send_own(None, Data)
        if self._incoming.count and self.me == self._sequencer:
            self._order()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches):
                self._on_data(event.sender, batches, event.packet_id, now)
            case Order() as order:
                self._on_order(event.sender, order, event.packet_id)
            case Consumed() as report:
                self._on_consumed_report(event.sender, report)

    # Sequencer

    def _order(self) -> None:
        """Number the most urgent messages that all members have room for, and broadcast the order."""
        for position, batches, bottleneck in self._numbered_frames():
            self.send_all(Order(position, tuple(map(reference_to, batches)), bottleneck))

    # Destination

    def _on_data(self, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.received(batch, packet_id)
            if self.me == self._sequencer:
                self._incoming.put(batch, now)
        self._append_next()

    def _on_order(self, sender: ProcessId, order: Order, packet_id: PacketId) -> None:
        if sender != self._sequencer or order.position != self._positions_end:
            raise PeerFault(
                f"{sender} orders position {order.position}; "
                f"expected {self._positions_end} from {self._sequencer}"
            )
        is_bottleneck = order.bottleneck == self.me.name
        for reference in order.references:
            self._check_reference(sender, reference)
            self._messages.ordered(OrderedReference(reference, sender, packet_id, is_bottleneck))
            self._positions_end += reference.count
        self._append_next()

    def _check_reference(self, sender: ProcessId, reference: Reference) -> None:
        stream = (reference.sender, reference.level)
        expected = self._number_expected.get(stream, reference.first)
        if reference.sender not in self.ranks or reference.first != expected:
            raise PeerFault(f"{sender} orders {reference}; number {expected} of a member is next")
        self._number_expected[stream] = expected + reference.count

    def _append_next(self) -> None:
        """Append what is next in the order and has arrived."""
        for ordered, brought_by, batches in self._messages.next_ordered():
            self.depends_on(ordered.packet_id)
            self.depends_on(brought_by)
            self._validator.ordered(ordered.reference)
            self.append_ordered(batches, ordered.is_bottleneck)
