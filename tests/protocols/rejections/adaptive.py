"""What the adaptive order rejects."""

from core.builders import A, B, C, batch_of
from priocast.core.identity import STEP_MAX
from priocast.core.protocol import Packet
from priocast.core.stamp import DistributionId
from priocast.protocols.adaptive.adaptive import Adaptive
from priocast.protocols.adaptive.packets import FilledSlot, SkippedTurns
from priocast.protocols.adaptive.slots import CYCLE_MAX, DEFAULT_ID, WEIGHT_MAX
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.packets import Consumed
from protocols.rejections.row import Situation, heard

OF_B = (batch_of(1, sender=B),)
NEXT_OF_B = (batch_of(1, first=1, sender=B),)
FIRST = DistributionId(1, 0)
WEIGHTS = (2, 1, 1)
NOT_OF_A_VIEW = "of which the weights are not those of a view"

HAS_SENT = Situation(Adaptive, A, heard(B, FilledSlot(DEFAULT_ID, 2, 4, OF_B)))
HAS_CHANGED = Situation(Adaptive, A, heard(B, SkippedTurns(FIRST, 0, WEIGHTS)))

OUT_OF_TURN: list[FilledSlot | SkippedTurns] = [
    FilledSlot(DEFAULT_ID, 3, 5, NEXT_OF_B),
    FilledSlot(DEFAULT_ID, 4, 4, NEXT_OF_B),
    FilledSlot(DEFAULT_ID, 5, STEP_MAX + 6, NEXT_OF_B),
    SkippedTurns(DEFAULT_ID, 4),
    SkippedTurns(DEFAULT_ID, 3),
    SkippedTurns(DEFAULT_ID, STEP_MAX + 6),
]

BAD_DISTRIBUTIONS = [
    SkippedTurns(FIRST, 0),
    SkippedTurns(FIRST, 0, (1, 1)),
    SkippedTurns(FIRST, 0, (1, 1, CYCLE_MAX)),
    SkippedTurns(DistributionId(1, 3), 0, WEIGHTS),
    SkippedTurns(DistributionId(STEP_MAX + 1, 0), 0, WEIGHTS),
]

REJECTIONS = [
    *(
        HAS_SENT.rejects("a turn that was used, or is far ahead", B, packet, "; 4 is next")
        for packet in OUT_OF_TURN
    ),
    HAS_CHANGED.rejects(
        "an earlier distribution",
        B,
        FilledSlot(DEFAULT_ID, 0, 1, OF_B),
        "b#1 uses distribution 0.0 with weights () after 1.0",
    ),
    HAS_CHANGED.rejects(
        "other weights than another member sent",
        C,
        SkippedTurns(FIRST, 0, (1, 2, 1)),
        "c#1 uses distribution 1.0 with weights (1, 2, 1) after 0.0",
    ),
    HAS_CHANGED.rejects(
        "a known distribution without its weights",
        C,
        SkippedTurns(FIRST, 0),
        "c#1 uses distribution 1.0 with weights () after 0.0",
    ),
    *(
        Situation(Adaptive, A).rejects("weights of no such view", B, packet, NOT_OF_A_VIEW)
        for packet in BAD_DISTRIBUTIONS
    ),
    Situation(Adaptive, A).rejects(
        "a forged sender", C, FilledSlot(DEFAULT_ID, 0, 1, OF_B), "c#1 submits a message of b#1"
    ),
    Situation(Adaptive, A).rejects(
        "more consumed than was sent",
        B,
        Consumed(1, 1),
        "b#1 reports 1 messages consumed; it must be between 0, its last report, and 0",
    ),
]
MALFORMED: list[tuple[type[OrderingProtocol], Packet]] = [
    (Adaptive, FilledSlot(DEFAULT_ID, 0, 1, ())),
    (Adaptive, FilledSlot(DEFAULT_ID, -1, 1, OF_B)),
    (Adaptive, SkippedTurns(DistributionId(-1, 0), 1)),
    (Adaptive, SkippedTurns(DistributionId(1, 256), 1)),
    (Adaptive, SkippedTurns(FIRST, 1, (0, 1, 1))),
    (Adaptive, SkippedTurns(FIRST, 1, (WEIGHT_MAX + 1, 1, 1))),
    (Adaptive, SkippedTurns(FIRST, 1, (1,) * 257)),
]
