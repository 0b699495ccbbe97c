"""Queue re-ordering: an urgent message overtakes what is queued, as long as no member has consumed it.

Gives: Integrity, Total order, Agreement, FIFO among equals, Priority accounting: of two messages the less
    urgent one goes first exactly if some member had consumed it when it received the other one. With
    `overtakes_max`, Bounded overtaking: while a member knows of a queued message that it has not consumed, it
    sends at most that many more urgent ones. Starvation policies are rejected. Plain: FIFO order.
Costs: three hops and 3 (n - 1) frames a message (data, acknowledgments, decision), shared by all messages
    of a frame; fully `distributed`: two hops and (n + 1) (n - 1) frames. With priorities, the members
    exchange in rounds. One report of consumption per member and quarter of what a sender may have in
    flight. Only levels in use cost anything.
Orders: all members together, by what they had consumed when they received a message; the sender collects it.
Assumes: reliable FIFO links, a fixed view, applications that take longer than two hops for a message.
Priorities act: in the sender's outgoing queue, and in every member's queue of messages to be consumed.
Reference: the reorder paper, in the cut form of its concurrent version.
Diverges: the paper inserts into one queue with lock-sets, target-tails and consumed-histories; that form, as
    corrected, is `reorder-locks`. Here each level has its queue, ordered by the largest number that the
    members propose, and a message has a cut instead of an insertion point: the last message of each lower
    level that goes before it. The lowest level is no exception. Batches are inserted, not messages. At the
    end of a view all that is decided is delivered in the order that follows from it; the rest is sent again.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.core.view import View
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.reorder.acknowledgments import highest
from priocast.protocols.reorder.cut_packets import (
    CutAcknowledgment,
    CutAcknowledgments,
    CutAcknowledgmentsToAll,
    CutDecision,
    CutDecisions,
    CutEntries,
)
from priocast.protocols.reorder.exchange import ExchangePackets
from priocast.protocols.reorder.level_queues import Cut, CutInsertion, LevelQueues
from priocast.protocols.reorder.reordering import ReorderingProtocol


class Reorder(ReorderingProtocol[CutInsertion, CutAcknowledgment, CutDecision]):
    """A member's part in the protocol; all members do the same."""

    NAME = "reorder"
    EXCHANGE_PACKETS = ExchangePackets(CutAcknowledgments, CutAcknowledgmentsToAll, CutDecisions)
    PACKETS = (NumberedData, *EXCHANGE_PACKETS, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        self._level_queues = LevelQueues(view.members.index(me), len(view.members))
        super().__init__(me, view, options, position, self._level_queues)

    def _on_data(self, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        """Queue the batches, and acknowledge them with what was consumed at this very moment."""
        cut = self._level_queues.consumed_below(max(batch.urgency for batch in data.batches))
        insertions = [
            self._level_queues.receive(batch, (rank, data.number, index), cut)
            for index, batch in enumerate(data.batches)
        ]
        proposals = tuple([insertion.proposal for insertion in insertions])
        acknowledgment = CutAcknowledgment(rank, data.number, proposals, _encoded(cut))
        self._exchange.acknowledge(acknowledgment, insertions, [packet_id])

    def _decision(self, number: int, acknowledgments: list[CutAcknowledgment]) -> CutDecision:
        """The highest proposals, and the last message of each lower level that any member had consumed."""
        finals = highest([each.proposals for each in acknowledgments])
        return CutDecision(number, finals, _latest({each.consumed for each in acknowledgments}))

    def _check_decision(
        self, sender: ProcessId, insertions: list[CutInsertion], decision: CutDecision
    ) -> None:
        if _latest({_encoded(insertions[0].cut), decision.cut}) != decision.cut:
            raise PeerFault(f"{sender} lets data {decision.number} overtake what {self.me} had consumed")

    def _insert(self, insertions: list[CutInsertion], decision: CutDecision) -> None:
        """Give each batch its position in its level, and its cut."""
        cut = _decoded(decision.cut)
        for insertion, final in zip(insertions, decision.finals, strict=True):
            self._level_queues.decide(insertion, final, cut)
            if self._bound is not None:
                self._bound.waits(insertion)


def _latest(cuts: set[CutEntries]) -> CutEntries:
    """The last message of each level that any of these cuts has; mostly they are equal."""
    if len(cuts) == 1:
        return next(iter(cuts))
    latest: Cut = {}
    for cut in cuts:
        for level, position in _decoded(cut).items():
            latest[level] = max(latest.get(level, position), position)
    return _encoded(dict(sorted(latest.items(), reverse=True)))


def _encoded(cut: Cut) -> CutEntries:
    """A cut as it is sent, the highest level first."""
    return tuple([(level, number, taken) for level, (number, taken) in cut.items()])


def _decoded(entries: CutEntries) -> Cut:
    return {level: (number, taken) for level, number, taken in entries}
