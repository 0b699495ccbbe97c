"""Moving sequencer, broadcast-broadcast: members broadcast, and the holder of the token broadcasts the order.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the holder of the token,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and 2 (n - 1) frames a message and one for the token, shared by all messages of a turn; only
    one of them carries the message. Per member and quarter of a window one report of consumption to all.
Orders: the holder of the token, by references to what it has received; each member in its turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the holder's queue of messages without a position
    (priority sequencing). Every member has that queue, so the token need not carry it.
Reference: the techniques paper, sections 5.2 and 6.1.
Diverges: taken literally, the paper's token orders a message twice: by a member that has it and does not know
    yet that it was ordered. Here the token is accepted only when all positions below its own are known here,
    and messages that are ordered leave the queue. The token does not circulate for ever: it moves when its
    holder has ordered something, and rests otherwise. As in `sequencer-ub`, a message gets its position only
    when every member has room for it. Batches move, not messages.
"""

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, reference_to
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.packets import Consumed, Data, Order
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.ring.moving import MovingSequencer
from priocast.protocols.ring.pending_queue import PendingQueue
from priocast.protocols.ring.token_packets import Token


class MovingBb(MovingSequencer[Order]):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "moving-bb"
    PACKETS = (Data, Order, Token, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position, PendingQueue(options.policy))
        self._messages = ReferencedMessages()
        # A sender may know positions of its messages that this member does not know yet: those in the window.
        self._validator = SubmissionValidator(view, options.submit_max + WINDOW_MAX)

    def on_turn(self, event: Turn, now: int) -> None:
        self.send_own(None, Data)
        if self._ring.position is not None and not self.blocked and self._order(self._ring.position):
            self._pass_token()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches):
                self._on_data(event.sender, batches, event.packet_id, now)
            case Order() as order:
                self._on_order(event.sender, order, event.packet_id)
            case Token() as token:
                self._ring.receive(event.sender, token, self.position_next)
                self._ring.accept(self.position_next)
            case Consumed(total=total, window=window):
                self._grants.granted(event.sender, total, window)

    # Holder

    def _order(self, first: int) -> bool:
        """Number the most urgent messages that all members have room for, and broadcast the order.

        Return whether there were any.
        """
        for position, batches, bottleneck in self._numbered_frames(self._pending):
            self.send_all(Order(position, tuple(map(reference_to, batches)), bottleneck))
        return self._ring.position != first

    def _pass_token(self) -> None:
        if self._ring.others:
            self.send(self._ring.others[0], Token(self._ring.release()))

    # Destination

    def _on_data(self, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.received(batch, packet_id)
            self._pending.put(batch, now)
        self._append_next()

    def _on_order(self, sender: ProcessId, order: Order, packet_id: PacketId) -> None:
        for orderer, next_order, ordered_by in self._in_order(sender, order, packet_id):
            is_bottleneck = next_order.bottleneck == self.me.name
            for reference in next_order.references:
                self._messages.ordered(OrderedReference(reference, orderer, ordered_by, is_bottleneck))
        self._append_next()

    def _append_next(self) -> None:
        """Append what is next in the order and has arrived; then the token may be accepted."""
        for ordered, brought_by, batches in self._messages.next_ordered():
            self.depends_on(ordered.packet_id)
            self.depends_on(brought_by)
            self._validator.ordered(ordered.reference)
            if ordered.orderer != self.me:
                self._grants.ordered_together(batches)
            self.append_ordered(batches, ordered.is_bottleneck)
        self._ring.accept(self.position_next)
