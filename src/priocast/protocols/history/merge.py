"""Communication history, deterministic merge: the members' streams are merged round by round.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at each sender, Bounded
    overtaking within a sender's queue by the chosen starvation policy. Plain: FIFO order.
Costs: one hop and n - 1 frames a message, shared by all messages of a slot, if all members have something to
    send; else each silent member sends n - 1 frames to skip the slot, and the message waits for them: two
    hops. Per member, sender and quarter of a window one report of consumption.
Orders: every member by itself, from the slots that it received.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending). Nothing overtakes what is in a slot, so no
    member has more than two slots of messages that are not merged yet.
Reference: the techniques paper, sections 5.4.2 and 6.2.
Diverges: the paper's members send all the time, dummies where there is nothing to send. Here a member without
    messages skips its slots only up to the round for which another one has sent messages, so that an idle
    group is silent. A slot carries a frame of batches instead of a message.
"""

from collections import deque
from typing import NamedTuple

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.history.merge_packets import SKIPPED_MAX, SkippedSlots, Slot

_UNMERGED_MAX = 2


class _FilledSlots(NamedTuple):
    """Slots that a packet has filled: those before `round_next` that no earlier packet has filled."""

    round_next: int
    packet: Slot | SkippedSlots
    packet_id: PacketId


class DeterministicMerge(PacedProtocol):
    """A member's part in the protocol; all members do the same."""

    NAME = "deterministic-merge"
    PRIORITIES_ACT = "sending"
    PACKETS = (Slot, SkippedSlots, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        # sender
        self._own_next = 0
        self._unmerged_count = 0
        self._rounds_awaited = 0
        # destination
        self._round_next = dict.fromkeys(view.members, 0)
        self._filled = [deque[_FilledSlots]() for _ in view.members]
        self._merging = (0, 0)

    @property
    def idle(self) -> bool:
        return self.settled and self._own_next >= self._rounds_awaited

    def on_turn(self, event: Turn, now: int) -> None:
        if not self.blocked:
            self._send_slots()
            self._skip_slots()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Slot() as slot:
                self.accept(event.sender, slot.batches, slot.bottleneck)
                self._on_filled(event.sender, slot, 1, event.packet_id)
                self._rounds_awaited = max(self._rounds_awaited, slot.round + 1)
                self._merge()
            case SkippedSlots() as skipped:
                self._on_filled(event.sender, skipped, skipped.count, event.packet_id)
                self._merge()
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    def _send_slots(self) -> None:
        """Fill the next slots with own messages, as long as few of them are not merged."""
        while self._unmerged_count < _UNMERGED_MAX:
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(Slot(self._own_next, batches, bottleneck))
            self._own_next += 1
            self._unmerged_count += 1

    def _skip_slots(self) -> None:
        """Skip the slots that others wait for, unless own messages wait only for a merge."""
        count = min(self._rounds_awaited - self._own_next, SKIPPED_MAX)
        is_paced = self.outgoing and self._unmerged_count == _UNMERGED_MAX
        if count > 0 and not is_paced:
            self.send_all(SkippedSlots(self._own_next, count))
            self._own_next += count

    # Destination

    def _on_filled(
        self, sender: ProcessId, packet: Slot | SkippedSlots, count: int, packet_id: PacketId
    ) -> None:
        expected = self._round_next[sender]
        if packet.round != expected:
            raise PeerFault(f"{sender} fills a slot of round {packet.round}; expected round {expected}")
        self._round_next[sender] += count
        self._filled[self.ranks[sender]].append(_FilledSlots(expected + count, packet, packet_id))

    def _merge(self) -> None:
        """Go through the rounds, and through the members in each round, as far as slots are filled."""
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
