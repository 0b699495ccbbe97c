"""Queue re-ordering: an urgent message overtakes what is queued, as long as nobody has consumed it.

Gives: Integrity, Total order, Agreement, FIFO among equals, Priority accounting: of two messages the less
    urgent one goes first exactly if some member had consumed it when the other one came there. With
    `overtakes_max`, Bounded overtaking: members send no more urgent ones than that while they have not
    consumed what they know to be queued. Plain: FIFO order.
Costs: three hops and 3 (n - 1) frames a message (data, answers, decision), shared by all messages of a frame;
    fully `distributed`: two hops and (n + 1) (n - 1) frames. One report of consumption per member and
    quarter of what a sender may have under way. Only levels in use cost anything.
Orders: all members together, by what they had consumed when a message came; the sender collects it.
Assumes: reliable FIFO links, a fixed view, applications for which a message takes longer than two hops.
Priorities act: in the sender's outgoing queue, and in every member's queue of messages to be consumed.
Reference: the reorder paper, in the cut form of its concurrent version.
Diverges: the paper inserts into one queue with lock-sets, target-tails and consumed-histories; that form, as
    corrected, is `reorder-locks`. Here each level has its queue, ordered by the largest number that the
    members propose, and a message has a cut instead of an insertion point: the last message of each lower
    level that goes before it. The lowest level is no exception. Batches join, not messages. At the end of
    a view all that was agreed on is consumed in the order that follows from it; the rest is sent again.
"""

from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.core.view import View
from priocast.protocols.flow.consumption import Consumed
from priocast.protocols.reorder.answers import Answer, Count
from priocast.protocols.reorder.base import (
    Answers,
    AnswersToAll,
    Data,
    Decided,
    Decision,
    Reordering,
    highest,
)
from priocast.protocols.reorder.cut_queues import Cut, CutJoin, Levels
from priocast.protocols.reorder.level_order import JoinId

#: By level: a batch by its number, and how many of its messages.
Told = tuple[tuple[Annotated[int, msgspec.Meta(ge=0, le=255)], Count, Count], ...]
PerLevel = Annotated[Told, msgspec.Meta(max_length=256)]


class CutAnswer(Answer, frozen=True, array_like=True):
    """With the last messages of the lower levels that the member's application had consumed."""

    consumed: PerLevel

    def __str__(self) -> str:
        return f"{self.sender}:{self.number} {self.proposals} consumed {_text(self.consumed)}"


class CutDecision(Decision, frozen=True, array_like=True):
    """With the cut of all batches of the packet."""

    cut: PerLevel

    def __str__(self) -> str:
        return f"{self.number} {self.finals} after {_text(self.cut)}"


class CutAnswers(Answers[CutAnswer], frozen=True, tag="answers"):
    """From a member to a sender: where its messages may go."""


class CutAnswersToAll(AnswersToAll[CutAnswer], frozen=True, tag="answers-to-all"):
    """From a member to all, where nobody collects for the others."""


class CutDecided(Decided[CutDecision], frozen=True, tag="decided"):
    """From a sender to all: where its messages go."""


class Reorder(Reordering[CutJoin, CutAnswer, CutDecision]):
    """A member's part in the protocol."""

    NAME = "reorder"
    PACKETS = (Data, CutAnswers, CutAnswersToAll, CutDecided, Consumed)
    ANSWERS = CutAnswers
    ANSWERS_TO_ALL = CutAnswersToAll
    DECIDED = CutDecided

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._levels = Levels(self.ranks[me], len(view.members))

    @property
    def _queues(self) -> Levels:
        return self._levels

    def _join(self, rank: int, data: Data, packet_id: PacketId) -> None:
        top = max(batch.urgency for batch in data.batches)
        cut = self._levels.consumed_below(top)
        joins = [self._new_join(batch, (rank, data.number, n), cut) for n, batch in enumerate(data.batches)]
        proposals = tuple(join.proposal for join in joins)
        answer = CutAnswer(rank, data.number, proposals, _told(cut))
        self._joined((rank, data.number), joins, answer, [packet_id])

    def _new_join(self, batch: Batch, identity: JoinId, cut: Cut) -> CutJoin:
        level = self._levels[batch.urgency]
        join = CutJoin(batch, identity, level.propose(), cut)
        level.receive(join)
        return join

    def _decision(self, number: int, answers: list[CutAnswer]) -> CutDecision:
        """The last of each lower level that anybody had consumed."""
        cut = _latest({answer.consumed for answer in answers})
        finals = highest([answer.proposals for answer in answers])
        return CutDecision(number, finals, cut)

    def _check_decision(self, sender: ProcessId, joins: list[CutJoin], decision: CutDecision) -> None:
        super()._check_decision(sender, joins, decision)
        if _latest({_told(joins[0].cut), decision.cut}) != decision.cut:
            raise PeerFault(f"{sender} lets data {decision.number} overtake what {self.me} had consumed")

    def _agreed(self, joins: list[CutJoin], decision: CutDecision) -> None:
        cut = _heard(decision.cut)
        for join, final in zip(joins, decision.finals, strict=True):
            join.cut = cut
            self._levels[join.level].agree(join, final)


def _latest(cuts: set[Told]) -> Told:
    """The last of each level that any of these names; mostly they are alike."""
    if len(cuts) == 1:
        return next(iter(cuts))
    latest: Cut = {}
    for cut in cuts:
        for level, place in _heard(cut).items():
            latest[level] = max(latest.get(level, place), place)
    return _told(dict(sorted(latest.items(), reverse=True)))


def _told(cut: Cut) -> Told:
    """A cut as it travels, the highest level first."""
    return tuple([(level, number, taken) for level, (number, taken) in cut.items()])


def _heard(told: Told) -> Cut:
    return {level: (number, taken) for level, number, taken in told}


def _text(told: Told) -> str:
    return f"[{', '.join(f'{level}/{number}+{taken}' for level, number, taken in told)}]"
