"""Deliberate faults in protocols and links: each class does one thing wrong."""

from collections.abc import Sequence

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.core.stamp import Stamp
from priocast.core.starvation import FirstInFirstOut
from priocast.core.view import View
from priocast.links.fifo_link import FifoLink, _BodyInFlight
from priocast.links.frame import Frame
from priocast.protocols.adaptive.adaptive import Adaptive
from priocast.protocols.adaptive.slots import DEFAULT_ID
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Consumed, Ordered
from priocast.protocols.flow.window import WINDOW_FIRST
from priocast.protocols.history.causal import CausalHistory
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.reorder.overtaking_bound import OvertakingBound
from priocast.protocols.ring.token_ring import TokenRing
from priocast.protocols.sequencer.ub import SequencerUb

UNBOUNDED = 1 << 40


# Protocols


class LastInFirstOutQueue(PriorityQueue):
    """Of equal sort keys, the last that entered leaves first."""

    def put(self, batch: Batch, now: int) -> None:
        self._arrivals -= 2
        super().put(batch, now)


class UnstableSequencer(SequencerUb):
    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._incoming = LastInFirstOutQueue(options.policy, UNBOUNDED, UNBOUNDED)


class IndifferentSequencer(SequencerUb):
    """Orders messages first in, first out."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._incoming = PriorityQueue(FirstInFirstOut(), UNBOUNDED, UNBOUNDED)


class TrustingDestination(SequencerUb):
    """Takes the message that arrives next for the next in the order."""

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        super()._on_ordered(sender, Ordered(self.position_next, ordered.batches), packet_id)


class ReceiptReporter(SequencerUb):
    """Reports messages as consumed when they are received: the window no longer holds anything back."""

    _received = 0

    def append_ordered(self, batches: Sequence[Batch], is_bottleneck: bool) -> None:
        super().append_ordered(batches, is_bottleneck)
        self._received += sum(batch.count for batch in batches)
        self.send(self._sequencer, Consumed(self._received, self.options.window or WINDOW_FIRST))

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        pass


class GenerousGrants(Grants):
    """Orders one message more than every member has granted."""

    def room(self, level: int) -> int:
        return super().room(level) + 1


class ExceedingSequencer(SequencerUb):
    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._grants = GenerousGrants(view, options)


class ExceedingSender(CausalHistory):
    """Sends more messages than every member has granted to it."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.grants = GenerousGrants(view, options, len(view.members))


class IndifferentSender(SequencerUb):
    """Submits messages first in, first out; the sequencer is correct."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.outgoing = PriorityQueue(FirstInFirstOut(), options.queue_max, options.queue_bytes_max)


class IndifferentHolder(TokenRing):
    """Sends messages first in, first out when it has the token."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.outgoing = PriorityQueue(FirstInFirstOut(), options.queue_max, options.queue_bytes_max)


class SkippingAtTheEnd(Adaptive):
    """Skips the open slots when the view ends, as in figure 6 of the paper: positions differ by side."""

    def close(self) -> None:
        last = max(slots.clock for slots in self._senders)
        self._complete = (*last[:2], last[2] + 1)
        for slots in self._senders:
            slots._packets.append((self._complete, slots._packets[-1][1]))
        self._append_next()


class UnnamedDistributions(Adaptive):
    """Stamps do not name the distribution, in which numbers begin anew."""

    def queue_ordered(self, batch: Batch) -> None:
        super().queue_ordered(batch)
        self._ordered_batches[-1].stamp = Stamp(self._view_id, DEFAULT_ID, self._stamp.number)


class KeptCredit(InFlight):
    def ordered(self, batch: Batch) -> None:
        pass


class CreditKeeper(SequencerUb):
    """Does not get back the credit of a message that is ordered."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.in_flight = KeptCredit(options.submit_max, options.submit_bytes_max, options.prioritised)


def of_one_level(data: NumberedData) -> NumberedData:
    return msgspec.structs.replace(data, batches=tuple(batch.in_line() for batch in data.batches))


class OneLevel(Reorder):
    """All messages are in one queue, so nothing is ever re-ordered."""

    def _on_data(self, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        super()._on_data(rank, of_one_level(data), packet_id)


class OneLevelWithLocks(ReorderLocks):
    """The same with locks."""

    def _lock(self, rank: int, data: NumberedData, packet_ids: list[PacketId]) -> None:
        super()._lock(rank, of_one_level(data), packet_ids)


class UnboundedOvertaking(OvertakingBound):
    """Sends everything at once."""

    def room(self, level: int) -> int:
        return 1 << 16


# Links


class HastyLink(FifoLink):
    """Passes a body on when it arrives, in any order."""

    def _on_data(self, frame: Frame, now: int) -> list[bytes]:
        known = frame.sequence in self._early
        bodies = super()._on_data(frame, now)
        if frame.sequence in self._early and not known:
            return [frame.body]
        return bodies[:1]


class RepeatingLink(FifoLink):
    """Passes a body on as often as it arrives."""

    def _on_data(self, frame: Frame, now: int) -> list[bytes]:
        duplicates = self.duplicates
        bodies = super()._on_data(frame, now)
        return [frame.body] if self.duplicates > duplicates else bodies


class ForgetfulLink(FifoLink):
    """Never retransmits."""

    def _transmit_again(self, sequence: int, under_way: _BodyInFlight, now: int) -> None:
        under_way.sent_at = now
