"""Queue re-ordering with lock-sets: the form of the paper, corrected.

Gives: Integrity, Total order, Agreement, FIFO among equals, Priority accounting: of two messages the less
    urgent one goes first exactly if some member had consumed it when it received the other one. With
    `overtakes_max`, Bounded overtaking: while a member knows of a queued message that it has not consumed, it
    sends at most that many more urgent ones. Starvation policies are rejected. Plain: FIFO order.
Costs: three hops and 3 (n - 1) frames a message (data, acknowledgments, decision), shared by all messages
    of a frame; fully `distributed`: two hops and (n + 1) (n - 1) frames. With priorities, the members
    exchange in rounds. One report of consumption per member and quarter of what a sender may have in
    flight. Locking and inserting take time in proportion to the levels and senders in use, not to the queue.
    An acknowledgment names what is locked, at worst message by message, and must fit into a frame: no more
    than 4,096 messages are queued.
Orders: all members together, by what they had queued and consumed when they received a message; the sender
    collects it.
Assumes: reliable FIFO links, a fixed view, applications that take longer than two hops for a message.
Priorities act: in the sender's outgoing queue, and in every member's queue of messages to be consumed.
Reference: the reorder paper, section 4.4, with figures 1 and 4. The tests compare it with the paper's section
    4.3, one message at a time.
Diverges: the concurrent version, as written, does not keep the order total. Here a message is not inserted
    before all that its history-set names are inserted (the wait rule); one agreed order per level, by the
    largest number that members propose, governs insertion, the lowest level included; the dummy tail has a
    lock-set; a batch inserts its messages together. Target-tails and histories are sent as one range of
    numbers per sender and level, and what all have consumed is left out of histories; the wait rule counts
    what was inserted, so a late acknowledgment that names such a message blocks nothing. A message needs the
    acknowledgments of all members of the view; if the view ends first, what nobody can have consumed is sent
    again, and nobody continues without an acknowledgment as in figure 4.
"""

from functools import reduce
from operator import and_, or_
from typing import ClassVar

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, Packet, PacketId
from priocast.core.view import View
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.reorder.acknowledgments import highest
from priocast.protocols.reorder.exchange import ExchangePackets
from priocast.protocols.reorder.lock_block import LockInsertion
from priocast.protocols.reorder.lock_packets import (
    LockAcknowledgment,
    LockAcknowledgments,
    LockAcknowledgmentsToAll,
    LockDecision,
    LockDecisions,
)
from priocast.protocols.reorder.lock_queue import LockQueue
from priocast.protocols.reorder.message_sets import MessageSet
from priocast.protocols.reorder.reordering import ReorderingProtocol


class ReorderLocks(ReorderingProtocol[LockInsertion, LockAcknowledgment, LockDecision]):
    """A member's part in the protocol; all members do the same."""

    NAME = "reorder-locks"
    EXCHANGE_PACKETS = ExchangePackets(LockAcknowledgments, LockAcknowledgmentsToAll, LockDecisions)
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (NumberedData, *EXCHANGE_PACKETS, Consumed)
    QUEUED_MAX = 4096
    FRAME_BATCHES_MAX = 8

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        self._lock_queue = LockQueue(view.members.index(me), len(view.members))
        super().__init__(me, view, options, position, self._lock_queue)

    def _on_data(self, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        self._lock(rank, data, [packet_id])

    def _lock(self, rank: int, data: NumberedData, packet_ids: list[PacketId]) -> None:
        """The lock phase: acknowledge the state of the queue at the moment of locking."""
        history = self._lock_queue.history.messages.ranges
        locked = [
            self._lock_queue.lock(batch, (rank, data.number, index))
            for index, batch in enumerate(data.batches)
        ]
        proposals = tuple(insertion.proposal for insertion, _ in locked)
        tails = tuple(tail.ranges for _, tail in locked)
        acknowledgment = LockAcknowledgment(rank, data.number, proposals, tails, history)
        self._exchange.acknowledge(acknowledgment, [insertion for insertion, _ in locked], packet_ids)

    def _decision(self, number: int, acknowledgments: list[LockAcknowledgment]) -> LockDecision:
        """Compute the common-sets (equation 4), their first messages and the history-set (equation 5)."""
        histories = [MessageSet.of(each.history) for each in acknowledgments]
        for rank, history in enumerate(histories):
            self._lock_queue.history.receive(rank, history)
        common_sets = [
            reduce(and_, map(MessageSet.of, tails))
            for tails in zip(*(each.tails for each in acknowledgments), strict=True)
        ]
        return LockDecision(
            number,
            highest([each.proposals for each in acknowledgments]),
            tuple(map(self._lock_queue.first_of, common_sets)),
            reduce(or_, histories).ranges,
            self._lock_queue.history.everywhere.ranges,
        )

    def _check_decision(
        self, sender: ProcessId, insertions: list[LockInsertion], decision: LockDecision
    ) -> None:
        if len(decision.points) != len(insertions) or not all(
            map(self._lock_queue.has_locked, insertions, decision.points)
        ):
            raise PeerFault(f"{sender} inserts data {decision.number} before messages that it has not locked")
        if not self._lock_queue.history.includes(MessageSet.of(decision.collected)):
            raise PeerFault(f"{sender} says that all have consumed what {self.me} has not")

    def _insert(self, insertions: list[LockInsertion], decision: LockDecision) -> None:
        """The insertion phase, as far as the wait rule allows."""
        self._lock_queue.history.collect(MessageSet.of(decision.collected))
        history = MessageSet.of(decision.history)
        for insertion, final, point in zip(insertions, decision.finals, decision.points, strict=True):
            self._lock_queue.decide(insertion, final, point, history)
            if self._bound is not None:
                self._bound.waits(insertion)
