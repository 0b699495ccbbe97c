"""Communication history, deterministic merge: the members' streams are merged round by round.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at each sender, Bounded
    overtaking within a sender's queue by the chosen starvation policy. Plain: FIFO order.
Costs: one hop and n - 1 frames a message, shared by all messages of a slot, if all members have something to
    send; else each silent member sends n - 1 frames to fill the slot, and the message waits for them: two
    hops. Per member, sender and quarter of a window one report of consumption.
Orders: every member by itself, from the slots that it received.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending). Nothing overtakes what is in a slot, so no
    member has more than two slots of messages that are not merged yet.
Reference: the techniques paper, sections 5.4.2 and 6.2.
Diverges: the paper's members send all the time, dummies where there is nothing to send. Here a member without
    messages fills its slots only up to the round for which another one has sent messages, so that a group at
    rest is silent. A slot carries a frame of batches instead of a message.
"""

from collections import deque
from typing import Annotated, NamedTuple

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import Batches, BottleneckName, Consumed
from priocast.protocols.flow.paced import PacedProtocol

_UNMERGED_MAX = 2
_SKIPPED_MAX = 1_024

Number = Annotated[int, msgspec.Meta(ge=0)]


class Slot(Packet, frozen=True, tag="slot"):
    """From a member to all: this is in my slot of this round.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    round: Number
    batches: Batches
    bottleneck: BottleneckName = ""


class Skip(Packet, frozen=True, tag="skip"):
    """From a member to all: in my slots of so many rounds, from this one on, is nothing."""

    TO_ALL = True

    round: Number
    count: Annotated[int, msgspec.Meta(ge=1, le=_SKIPPED_MAX)]


class _Filled(NamedTuple):
    """Slots that a member has filled: those before `round_next` that no earlier packet has filled."""

    round_next: int
    packet: Slot | Skip
    packet_id: tuple[int, int]


class DeterministicMerge(PacedProtocol):
    """A member's part in the protocol; all members do the same."""

    NAME = "deterministic-merge"
    PRIORITIES_ACT = "sending"
    PACKETS = (Slot, Skip, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        # sender
        self._own_next = 0
        self._unmerged_count = 0
        self._rounds_wanted = 0
        # destination
        self._round_next = dict.fromkeys(view.members, 0)
        self._filled = [deque[_Filled]() for _ in view.members]
        self._merging = (0, 0)

    @property
    def idle(self) -> bool:
        return not (self.outgoing or self.in_flight.count or self._own_next < self._rounds_wanted)

    def on_turn(self, event: Turn, now: int) -> None:
        if not self.blocked:
            self._send()
            self._fill_up()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Slot() as slot:
                self._on_filled(event.sender, slot, 1, event.packet_id)
                self.accept(event.sender, slot.batches, slot.bottleneck)
                self._rounds_wanted = max(self._rounds_wanted, slot.round + 1)
                self._merge()
            case Skip() as skip:
                self._on_filled(event.sender, skip, skip.count, event.packet_id)
                self._merge()
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    def _send(self) -> None:
        while self._unmerged_count < _UNMERGED_MAX:
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(Slot(self._own_next, batches, bottleneck))
            self._own_next += 1
            self._unmerged_count += 1

    def _fill_up(self) -> None:
        """Skip slots that others wait for, unless own messages wait for nothing but earlier slots."""
        count = min(self._rounds_wanted - self._own_next, _SKIPPED_MAX)
        paced = self.outgoing and self._unmerged_count == _UNMERGED_MAX
        if count > 0 and not paced:
            self.send_all(Skip(self._own_next, count))
            self._own_next += count

    # Destination

    def _on_filled(self, sender: ProcessId, packet: Slot | Skip, count: int, packet_id: PacketId) -> None:
        expected = self._round_next[sender]
        if packet.round != expected:
            raise PeerFault(f"{sender} fills a slot of round {packet.round}; round {expected} is next")
        self._round_next[sender] += count
        self._filled[self.ranks[sender]].append(_Filled(expected + count, packet, packet_id))

    def _merge(self) -> None:
        """Go through the rounds as far as slots are filled."""
        round_, rank = self._merging
        while self._filled[rank]:
            filled = self._filled[rank][0]
            self.depends_on(filled.packet_id)
            if isinstance(filled.packet, Slot):
                for batch in filled.packet.batches:
                    self.append(batch)
                if rank == self.ranks[self.me]:
                    self._unmerged_count -= 1
            if filled.round_next == round_ + 1:
                self._filled[rank].popleft()
            rank += 1
            if rank == len(self._filled):
                round_, rank = round_ + 1, 0
        self._merging = round_, rank
