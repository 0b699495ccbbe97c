"""Fixed sequencer, unicast-broadcast: members send to the sequencer, which numbers and broadcasts.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the sequencer,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and n frames a message (one submission, n - 1 copies), shared by all messages of a frame;
    one report of consumption per member and quarter of a window.
Orders: the sequencer, the coordinator of the view.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the sequencer's incoming queue (priority sequencing).
Reference: the cost paper, figure 1; the techniques paper, sections 5.1 and 6.1, figure 2.
Diverges: the paper's sequencer numbers a message as soon as it arrives, so its queue is empty unless the
    sequencer itself is too slow, and priorities have no effect. Here a message gets its number only when
    every member has room for it: members grant a window of messages that are ordered and not yet consumed,
    and the backlog waits in the queue. `while incoming is not empty` waits for more instead of ending. The
    figure's `pending` set, which holds messages that arrive out of order until their number is next, is gone:
    the sequencer sends all numbered messages over FIFO links, so they arrive in order, and a destination
    rejects any other position. Batches move, not messages.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.coordinated import CoordinatedProtocol, check_role
from priocast.protocols.flow.packets import Consumed, Ordered, Submit
from priocast.protocols.flow.submission_validator import SubmissionValidator


class SequencerUb(CoordinatedProtocol):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-ub"
    ROLE = "sequencer"
    PRIORITIES_ACT = "sequencing"
    PACKETS = (Submit, Ordered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._sequencer = view.coordinator
        self._validator = SubmissionValidator(view, options.submit_max)

    def on_turn(self, event: Turn, now: int) -> None:
        if self.outgoing.count:
            self.send_own(self._sequencer, Submit)
        if self._incoming.count and self.me == self._sequencer:
            self._order()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_ordered(event.sender, ordered, event.packet_id)
            case Submit(batches=batches):
                self._on_submit(event.sender, batches, now)
            case Consumed() as report:
                self._on_consumed_report(event.sender, report)

    # Sequencer

    def _on_submit(self, sender: ProcessId, batches: tuple[Batch, ...], now: int) -> None:
        check_role(self.ROLE, self.me, self._sequencer, sender)
        for batch in batches:
            self._validator.check(sender, batch)
            self._incoming.put(batch, now)

    def _order(self) -> None:
        """Number the most urgent messages that all members have room for, and broadcast them."""
        for position, batches, bottleneck in self._numbered_frames():
            self.send_all(Ordered(position, batches, bottleneck))
            for batch in batches:
                self._validator.ordered(batch)

    # Destination

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        if sender != self._sequencer or ordered.position != self.position_next:
            raise PeerFault(
                f"{sender} orders position {ordered.position}; "
                f"expected {self.position_next} from {self._sequencer}"
            )
        self.depends_on(packet_id)
        is_bottleneck = ordered.bottleneck == self.me.name
        for batch in ordered.batches:
            if batch.sender not in self.ranks:
                raise PeerFault(f"{sender} orders {batch}, which no member sent")
            self.append_ordered((batch,), is_bottleneck)
