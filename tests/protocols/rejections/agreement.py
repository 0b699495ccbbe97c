"""What the members of the agreement protocols reject."""

from core.builders import A, B, C, batch_of
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.message import Reference, reference_to
from priocast.core.protocol import WINDOW_MAX, Packet
from priocast.protocols.agreement.consensus_packets import ConsensusAccept, ConsensusPrepare, SetDecision
from priocast.protocols.agreement.proposal import AgreementProposal
from priocast.protocols.agreement.proposal_packets import (
    ApplyOrder,
    OrderVote,
    ProposedOrder,
    ReceivedCounts,
    StartConsensus,
)
from priocast.protocols.agreement.sets import AgreementSets
from priocast.protocols.agreement.skeen import AgreementSkeen
from priocast.protocols.agreement.skeen_packets import FinalTimestamps, ProposedTimestamps
from priocast.protocols.flow.data import NumberedData, PacedData
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.packets import Consumed, Data
from protocols.rejections.row import TURN, Situation, heard

ONE = (reference_to(batch_of(1, sender=C)),)
OTHER = (reference_to(batch_of(1, sender=B)),)
PROPOSED = ProposedOrder(1, 0, ONE)
FAR_AHEAD = (STEP_MAX // 3 + 1) * 3
"""A ballot of a, the first of three members."""

FORGED = "c#1 submits a message of b#1"
NEXT_OF_C = (Reference(C, 0, 1, 1),)
TOO_MUCH_CONSUMED = "b#1 reports 5 messages consumed; it must be between 0, its last report, and 0"


def _data(sender: ProcessId, number: int) -> NumberedData:
    return NumberedData(number, (batch_of(1, first=number, sender=sender),))


PROPOSAL = [
    *(
        Situation(AgreementProposal, B).rejects(
            "a packet for the starter", C, packet, "c#1 takes b#1 for the starter, which is a#1"
        )
        for packet in (ReceivedCounts(1, (0, 0, 0)), OrderVote(1), Consumed(0, 5))
    ),
    *(
        Situation(AgreementProposal, B).rejects(
            "a second starter", C, packet, "c#1 acts as the starter, which is a#1"
        )
        for packet in (StartConsensus(1, (0, 0, 0)), PROPOSED, ApplyOrder(1))
    ),
    *(
        Situation(AgreementProposal, B).rejects(
            "counts of another number of members",
            A,
            StartConsensus(1, counts),
            f"a#1 counts the messages of {len(counts)} members",
        )
        for counts in ((), (1, 1), (1, 1, 1, 1))
    ),
    *(
        Situation(AgreementProposal, A, heard(C, Data((batch_of(1, sender=C),))), TURN).rejects(
            "counts of another number of members in a reply",
            B,
            ReceivedCounts(1, counts),
            f"b#1 counts the messages of {len(counts)} members",
        )
        for counts in ((), (1, 1), (1, 1, 1, 1))
    ),
    Situation(AgreementProposal, A).rejects("a forged sender", C, Data((batch_of(1, sender=B),)), FORGED),
    *(
        Situation(AgreementProposal, B, heard(A, PROPOSED)).rejects(
            "a second proposal in a round or before the last is applied",
            A,
            ProposedOrder(number, 1, NEXT_OF_C),
            f"a#1 proposes round {number}; round 1 is open",
        )
        for number in (1, 2)
    ),
    Situation(AgreementProposal, B, heard(A, PROPOSED), heard(A, ApplyOrder(1))).rejects(
        "a round that is over", A, PROPOSED, "a#1 proposes round 1; round 1 was the last"
    ),
    *(
        Situation(AgreementProposal, B, position=40).rejects(
            "a gap or a repetition in the order",
            A,
            ProposedOrder(1, position, ONE),
            f"a#1 proposes position {position}; expected 40",
        )
        for position in (0, 41)
    ),
    *(
        Situation(AgreementProposal, B, *before).rejects(
            "the application of what was not proposed",
            A,
            ApplyOrder(number),
            f"a#1 applies round {number}, which is not proposed",
        )
        for number, before in ((1, ()), (2, (heard(A, PROPOSED),)))
    ),
    Situation(
        AgreementProposal,
        B,
        heard(C, Data((batch_of(2, sender=C),))),
        heard(A, ProposedOrder(1, 0, NEXT_OF_C)),
    ).rejects(
        "a position for a message that is not next",
        A,
        ApplyOrder(1),
        "c#1/0/1+1 is ordered; number 0 is next",
    ),
    Situation(AgreementProposal, A).rejects(
        "more consumed than was ordered", B, Consumed(5, 16), TOO_MUCH_CONSUMED
    ),
]

SETS = [
    Situation(AgreementSets, A).rejects("a forged sender", C, PacedData((batch_of(1, sender=B),)), FORGED),
    Situation(AgreementSets, A, heard(B, SetDecision(0, 0, ONE))).rejects(
        "a contradicting decision", C, SetDecision(0, 0, OTHER), "c#1 contradicts the decision of instance 0"
    ),
    Situation(AgreementSets, A, heard(B, SetDecision(0, 0, ONE)), heard(B, SetDecision(2, 9, ONE))).rejects(
        "a contradicting decision while both wait for earlier ones",
        C,
        SetDecision(2, 9, OTHER),
        "c#1 contradicts the decision of instance 2",
    ),
    *(
        Situation(AgreementSets, A, position=40).rejects(
            "a gap or a repetition in the order",
            B,
            SetDecision(0, position, ONE),
            f"b#1 decides about position {position}; expected 40",
        )
        for position in (0, 41)
    ),
    *(
        Situation(AgreementSets, A, heard(B, SetDecision(0, 0, ONE))).rejects(
            "a set that leaves out or repeats a message",
            B,
            SetDecision(1, 1, (Reference(C, 0, first, 1),)),
            f"b#1 decides on c#1/0/{first}+1; expected number 1",
        )
        for first in (0, 2)
    ),
    *(
        Situation(AgreementSets, A).rejects(
            "a leader in the ballot of another", C, packet, "c#1 acts as the leader of ballot 1, which is b#1"
        )
        for packet in (ConsensusPrepare(1, 0), ConsensusAccept(1, 0, ONE, 0))
    ),
    *(
        Situation(AgreementSets, B).rejects(
            "a ballot far ahead", A, packet, f"a#1 leads ballot {FAR_AHEAD} after 0"
        )
        for packet in (ConsensusPrepare(FAR_AHEAD, 0), ConsensusAccept(FAR_AHEAD, 0, ONE, 0))
    ),
    Situation(AgreementSets, B).rejects(
        "an instance far ahead",
        A,
        ConsensusAccept(0, WINDOW_MAX + 1, ONE, 0),
        f"a#1 proposes instance {WINDOW_MAX + 1}; 0 is next",
    ),
    Situation(AgreementSets, B).rejects(
        "a decision far ahead",
        A,
        SetDecision(WINDOW_MAX + 1, 0, ONE),
        f"a#1 decides instance {WINDOW_MAX + 1}, which no window allows",
    ),
    Situation(AgreementSets, A).rejects("more consumed than was sent", B, Consumed(5, 16), TOO_MUCH_CONSUMED),
]

SKEEN = [
    *(
        Situation(AgreementSkeen, B, heard(A, _data(A, 0))).rejects(
            "a frame out of order", A, _data(A, number), f"a#1 sends frame {number}; expected 1"
        )
        for number in (0, 2)
    ),
    Situation(AgreementSkeen, B).rejects(
        "messages of another sender", A, _data(C, 0), "a#1 submits a message of c#1"
    ),
    Situation(AgreementSkeen, B, heard(A, _data(A, 0))).rejects(
        "a final timestamp of a frame that was not received",
        A,
        FinalTimestamps(0, (1, 2)),
        "a#1 sends timestamps of 2 frames from 0 on; expected 0 of 1",
    ),
    Situation(AgreementSkeen, B, heard(A, _data(A, 0)), heard(A, FinalTimestamps(0, (1,)))).rejects(
        "a second final timestamp",
        A,
        FinalTimestamps(0, (2,)),
        "a#1 sends timestamps of 1 frames from 0 on; expected 1 of 1",
    ),
    Situation(AgreementSkeen, B, heard(C, _data(C, 0)), heard(A, _data(A, 0))).rejects(
        "a final timestamp below the proposal",
        A,
        FinalTimestamps(0, (1,)),
        "a#1 decides on timestamp 1, where b#1 proposed 2",
    ),
    Situation(AgreementSkeen, B, heard(A, _data(A, 0)), heard(A, _data(A, 1))).rejects(
        "timestamps that do not rise", A, FinalTimestamps(0, (4, 4)), "a#1 sends timestamp 4 after 4"
    ),
    Situation(AgreementSkeen, A).rejects(
        "a proposal for a frame that was not sent",
        B,
        ProposedTimestamps(0, (1,)),
        "b#1 sends timestamps of 1 frames from 0 on; expected 0 of 0",
    ),
    Situation(AgreementSkeen, A).rejects(
        "more consumed than was sent",
        B,
        Consumed(1, 1),
        "b#1 reports 1 messages consumed; it must be between 0, its last report, and 0",
    ),
]

REJECTIONS = [*PROPOSAL, *SETS, *SKEEN]
MALFORMED: list[tuple[type[OrderingProtocol], Packet]] = [
    (AgreementSkeen, FinalTimestamps(0, ())),
    (AgreementSkeen, FinalTimestamps(0, (0,))),
    (AgreementSkeen, ProposedTimestamps(-1, (1,))),
    (AgreementSkeen, ProposedTimestamps(0, (1,) * 1_025)),
]
