"""Fixed sequencer, unicast-unicast-broadcast: members ask the sequencer for numbers, and broadcast with them.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among those who ask and
    among the messages of each sender, Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: three hops and n + 1 frames a message (an ask, a grant, n - 1 copies), shared by all messages of a
    frame; messages pass nobody but their sender and their destinations. One report of consumption per
    member and quarter of a window.
Orders: the sequencer decides whose turn it is, each sender which of its messages takes the turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sequencer's queue of asks (priority sequencing) and in the sender's outgoing queue.
Reference: the techniques paper, sections 5.1 and 6.1.
Diverges: as `sequencer-ub`, numbers are given out only as far as every member has room, so that asks wait.
    A number is bound late: not to the message that it was asked for, but to the most urgent one that its
    sender has when it sends; the number asked for that one then goes to what is left. Who asks again for
    the same level joins its ask that waits, so that numbers come in few pieces. Grants are used in the
    order of their numbers, or FIFO among equals would break. Numbers are never given back, so a sender
    asks for no more than it has, and what it has does not get less. The window in bytes counts what was
    asked for until the messages are there. If the view ends, the first number without a message ends the
    order, and what has a number behind it is sent again.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import Consumed
from priocast.protocols.numbering.base import (
    NumberedBase,
    NumberGrant,
    NumberingProtocol,
    Numbers,
    RequestNumbers,
)
from priocast.protocols.numbering.requests import NumberRequest, NumberReservations
from priocast.protocols.sequencer.base import FixedSequencer


class Numbered(NumberedBase, frozen=True, tag="numbered"):
    """From a member to all: these have the places from `position` on, as the sequencer granted."""


class SequencerUub(FixedSequencer, NumberingProtocol):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-uub"
    PACKETS = (RequestNumbers, NumberGrant, Numbered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._grants: NumberReservations = NumberReservations(view, options)

    def on_turn(self, event: Turn, now: int) -> None:
        self._ask(self._sequencer)
        if self.me == self._sequencer:
            self._grant()
        self._send_numbered()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Numbered() as numbered:
                self._on_numbered(event.sender, numbered, event.packet_id)
            case RequestNumbers(wants=wants):
                self._on_ask(event.sender, wants, now)
            case NumberGrant() as grant:
                self._on_grant(event.sender, grant)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _on_grant(self, giver: ProcessId, grant: NumberGrant) -> None:
        if giver != self._sequencer:
            raise PeerFault(f"{giver} grants numbers, which only {self._sequencer} does")
        super()._on_grant(giver, grant)

    def _numbered(self, position: int, batches: tuple[Batch, ...], numbers: Numbers) -> Numbered:
        return Numbered(position, batches, numbers.bottleneck)

    # Sequencer

    def _on_ask(self, sender: ProcessId, wants: tuple[NumberRequest, ...], now: int) -> None:
        self._check_sequencer(sender)
        super()._on_ask(sender, wants, now)

    def _grant(self) -> None:
        self._number_next = self._give(self._number_next)

    # Destination

    def _on_numbered(self, sender: ProcessId, numbered: NumberedBase, packet_id: PacketId) -> None:
        if self.me == self._sequencer and numbered.position >= self._number_next:
            raise PeerFault(f"{sender} uses numbers from {numbered.position} on, which it was not granted")
        super()._on_numbered(sender, numbered, packet_id)

    def _on_placed(self, batch: Batch) -> None:
        if self.me == self._sequencer:
            super()._on_placed(batch)
