"""Fixed sequencer, unicast-broadcast: members send to the sequencer, which numbers and broadcasts.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the sequencer,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: two hops and n frames a message (one submission, n - 1 copies), shared by all messages of a frame;
    one report of consumption per member and quarter of a window.
Orders: the sequencer, the coordinator of the view.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the sequencer's incoming queue (priority sequencing).
Reference: the cost paper, figure 1; the techniques paper, sections 5.1 and 6.1, figure 2.
Diverges: the paper's sequencer numbers a message as soon as it has one, so its queue is empty unless the
    sequencer itself is too slow, and priorities do nothing. Here a message gets its number only when every
    member has room for it: members grant a window of messages that are ordered and not yet consumed, and
    the backlog waits in the queue. `while incoming is not empty` waits for more instead of ending.
    Batches move, not messages.
"""

from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import Batches, BottleneckName, Consumed
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.sequencer.base import QueueingSequencer


class Submit(Packet, frozen=True, tag="submit"):
    """From a member to the sequencer: order these."""

    batches: Batches


class Ordered(Packet, frozen=True, tag="ordered"):
    """From the sequencer to all: these are next in the order.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    position: Annotated[int, msgspec.Meta(ge=0)]
    batches: Batches
    bottleneck: BottleneckName = ""


class SequencerUb(QueueingSequencer):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-ub"
    PACKETS = (Submit, Ordered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._validator = SubmissionValidator(view, options.submit_max)

    def on_turn(self, event: Turn, now: int) -> None:
        self._submit()
        if self.me == self._sequencer:
            self._order()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_ordered(event.sender, ordered, event.packet_id)
            case Submit(batches=batches):
                self._on_submit(event.sender, batches, now)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _submit(self) -> None:
        self.send_own(self._sequencer, Submit)

    # Sequencer

    def _on_submit(self, sender: ProcessId, batches: tuple[Batch, ...], now: int) -> None:
        self._check_sequencer(sender)
        for batch in batches:
            self._validator.check(sender, batch)
            self._incoming.put(batch, now)

    def _number(self, batch: Batch) -> None:
        super()._number(batch)
        self._validator.placed(batch)

    def _ordered(self, position: int, batches: tuple[Batch, ...], bottleneck: str) -> Ordered:
        return Ordered(position, batches, bottleneck)

    # Destination

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        if sender != self._sequencer or ordered.position != self.position_next:
            raise PeerFault(
                f"{sender} orders position {ordered.position}; "
                f"expected {self.position_next} from {self._sequencer}"
            )
        held = ordered.bottleneck == self.me.name
        self.depends_on(packet_id)
        for batch in ordered.batches:
            self.place(batch, held)
