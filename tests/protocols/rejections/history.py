"""What the protocols that merge histories reject."""

from core.builders import A, B, C, batch_of
from priocast.core.identity import STEP_MAX
from priocast.core.protocol import Packet
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.history.all_ack import AllAck
from priocast.protocols.history.causal import CausalHistory
from priocast.protocols.history.merge import DeterministicMerge
from priocast.protocols.history.merge_packets import SkippedSlots, Slot
from priocast.protocols.history.timestamped_packets import NullMessage, StampedData
from protocols.rejections.row import Situation, heard

NEXT_OF_A = (batch_of(1, first=1),)
OUT_OF_ORDER: list[Slot | SkippedSlots] = [Slot(0, NEXT_OF_A), Slot(2, NEXT_OF_A), SkippedSlots(0, 1)]

TIMESTAMPED = [
    *(
        Situation(protocol, A, heard(B, StampedData(5, (batch_of(1, sender=B),)))).rejects(
            "a timestamp that does not rise",
            B,
            NullMessage(timestamp),
            f"b#1 sends timestamp {timestamp} after 5",
        )
        for protocol in (CausalHistory, AllAck)
        for timestamp in (1, 4, 5, STEP_MAX + 6)
    ),
    *(
        Situation(protocol, A).rejects(
            "a forged sender", C, StampedData(1, (batch_of(1, sender=B),)), "c#1 submits a message of b#1"
        )
        for protocol in (CausalHistory, AllAck)
    ),
    *(
        Situation(protocol, A).rejects(
            "more consumed than was sent",
            B,
            Consumed(5, 16),
            "b#1 reports 5 messages consumed; it must be between 0, its last report, and 0",
        )
        for protocol in (CausalHistory, AllAck)
    ),
]

MERGE = [
    *(
        Situation(DeterministicMerge, B, heard(A, Slot(0, (batch_of(1),)))).rejects(
            "a slot out of order", A, packet, f"a#1 fills a slot of round {packet.round}; expected round 1"
        )
        for packet in OUT_OF_ORDER
    ),
    Situation(DeterministicMerge, B).rejects(
        "messages of another sender", A, Slot(0, (batch_of(1, sender=C),)), "a#1 submits a message of c#1"
    ),
    Situation(DeterministicMerge, B).rejects(
        "more consumed than was sent",
        A,
        Consumed(1, 1),
        "a#1 reports 1 messages consumed; it must be between 0, its last report, and 0",
    ),
]

REJECTIONS = [*TIMESTAMPED, *MERGE]
MALFORMED: list[tuple[type[OrderingProtocol], Packet]] = [
    (AllAck, NullMessage(0)),
    (AllAck, StampedData(1, ())),
    (DeterministicMerge, SkippedSlots(0, 0)),
    (DeterministicMerge, SkippedSlots(0, 1_025)),
    (DeterministicMerge, SkippedSlots(-1, 1)),
    (DeterministicMerge, Slot(0, ())),
]
