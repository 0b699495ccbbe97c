"""What the two forms of re-ordering reject."""

import msgspec

from core.builders import A, B, C, batch_of
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.protocol import Broadcast, Consume, Packet
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.cut_packets import (
    CutAcknowledgment,
    CutAcknowledgments,
    CutAcknowledgmentsToAll,
    CutDecision,
    CutDecisions,
)
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.lock_packets import (
    LockAcknowledgment,
    LockAcknowledgments,
    LockAcknowledgmentsToAll,
    LockDecision,
    LockDecisions,
)
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.reorder.message_ranges import MessageRange
from protocols.locks_in_turn import InsertionTurns, ReorderLocksInTurn
from protocols.rejections.row import TURN, Situation, heard

AT_THE_SENDER = "b#1 decides at the sender, a#1 distributed"
BY_ALL = "b#1 decides distributed, a#1 at the sender"
FOREIGN = (MessageRange(0, 3, 0, 1),)


def _data(sender: ProcessId, number: int, level: int = 0, first: int = 0) -> NumberedData:
    return NumberedData(number, (batch_of(1, level, first, sender),))


def _cut(number: int, final: int, *cut: tuple[int, int, int]) -> CutDecisions:
    return CutDecisions((CutDecision(number, (final,), cut),))


def _acknowledgment(sender: int = 0, **changes: object) -> LockAcknowledgment:
    return msgspec.structs.replace(LockAcknowledgment(sender, 0, (1,), ((),), ()), **changes)


def _decision(**changes: object) -> LockDecisions:
    return LockDecisions((msgspec.structs.replace(LockDecision(0, (9,), (None,), (), ()), **changes),))


CUT_ACKNOWLEDGMENT = CutAcknowledgment(0, 0, (1,), ())

CUTS = [
    *(
        Situation(Reorder, A).rejects(
            "data out of order", B, _data(B, number, 7), f"b#1 sends data {number}; expected 0"
        )
        for number in (1, 7)
    ),
    Situation(Reorder, A).rejects(
        "an acknowledgment of what was never sent",
        B,
        CutAcknowledgments((CUT_ACKNOWLEDGMENT,)),
        "b#1 acknowledges data 0, which a#1 never sent",
    ),
    Situation(Reorder, A).rejects("another mode", B, CutAcknowledgmentsToAll((CUT_ACKNOWLEDGMENT,)), BY_ALL),
    Situation(Reorder, A, distributed=True).rejects("another mode", B, _cut(0, 3), AT_THE_SENDER),
    Situation(Reorder, A).rejects(
        "a decision that nothing waits for",
        B,
        _cut(0, 3),
        "b#1 decides on data 0, which does not wait for a decision",
    ),
    Situation(Reorder, A, heard(B, _data(B, 0, 7))).rejects(
        "a number far ahead", B, _cut(0, 3 * STEP_MAX), f"b#1 gives number {3 * STEP_MAX} after"
    ),
    Situation(Reorder, A, heard(B, _data(B, 0, 7)), heard(B, _data(B, 1, 7, first=1))).rejects(
        "a number that is lower than a proposal",
        B,
        _cut(1, 5),
        "b#1 gives data 1 a lower number than a#1 proposed",
    ),
    *(
        Situation(
            Reorder, A, heard(B, _data(B, 0, 7)), heard(B, _cut(0, 5)), Consume(1), heard(C, _data(C, 0, 200))
        ).rejects(
            "a cut that lets overtake what was consumed",
            C,
            _cut(0, 5, *cut),
            "lets data 0 overtake what a#1 had consumed",
        )
        for cut in ((), ((7, 2, 9),), ((7, 5, 0),), ((8, 5, 1),))
    ),
]

OWN_DATA_ACKNOWLEDGED_TWICE = (
    Broadcast(batch_of(1)),
    TURN,
    heard(A, LockAcknowledgments((_acknowledgment(),))),
    heard(B, LockAcknowledgments((_acknowledgment(),))),
)
MODES: list[tuple[Packet, str, bool]] = [
    (LockAcknowledgments((_acknowledgment(),)), AT_THE_SENDER, True),
    (_decision(), AT_THE_SENDER, True),
    (LockAcknowledgmentsToAll((_acknowledgment(),)), BY_ALL, False),
]

LOCKS = [
    *(
        Situation(ReorderLocks, A).rejects(
            "data out of order", B, _data(B, number), f"b#1 sends data {number}; expected 0"
        )
        for number in (1, 2)
    ),
    Situation(ReorderLocks, A).rejects(
        "messages of another sender", B, _data(C, 0), "b#1 submits a message of c#1"
    ),
    *(
        Situation(ReorderLocks, A).rejects(
            "an acknowledgment of what was never sent",
            B,
            LockAcknowledgments((_acknowledgment(sender),)),
            "b#1 acknowledges data 0, which a#1 never sent",
        )
        for sender in (0, 1)
    ),
    *(
        Situation(ReorderLocks, A, *OWN_DATA_ACKNOWLEDGED_TWICE).rejects(
            "an inconsistent acknowledgment", C, LockAcknowledgments((acknowledgment,)), fault
        )
        for acknowledgment, fault in (
            (
                _acknowledgment(proposals=(1, 1), tails=((), ())),
                "c#1 does not acknowledge each batch of data",
            ),
            (_acknowledgment(tails=((), ())), "c#1 sends an inconsistent acknowledgment of data 0"),
            (_acknowledgment(tails=(FOREIGN,)), "c#1 sends an inconsistent acknowledgment of data 0"),
            (_acknowledgment(history=FOREIGN), "c#1 sends an inconsistent acknowledgment of data 0"),
        )
    ),
    Situation(
        ReorderLocks, A, heard(B, LockAcknowledgmentsToAll((_acknowledgment(1),))), distributed=True
    ).rejects(
        "a second acknowledgment",
        B,
        LockAcknowledgmentsToAll((_acknowledgment(1),)),
        "b#1 acknowledges data (1, 0); expected number 1",
    ),
    Situation(ReorderLocks, A, distributed=True).rejects(
        "an acknowledgment of data of no member",
        B,
        LockAcknowledgmentsToAll((_acknowledgment(3),)),
        "b#1 acknowledges data of rank 3, which is no member",
    ),
    *(
        Situation(ReorderLocks, A, distributed=distributed).rejects("another mode", B, packet, fault)
        for packet, fault, distributed in MODES
    ),
    *(
        Situation(ReorderLocks, A, heard(B, _data(B, 0))).rejects(
            "a decision that nothing waits for",
            B,
            decision,
            f"b#1 decides on data {decision.decisions[0].number}, which does not wait for a decision",
        )
        for decision in (_decision(number=1), _decision(finals=(9, 9), points=(None, None)))
    ),
    *(
        Situation(
            ReorderLocks,
            A,
            heard(C, _data(C, 0, level=9)),
            heard(C, _decision()),
            heard(B, _data(B, 0, level=5)),
        ).rejects(
            "an insertion point that was not locked: not here, or not less urgent",
            B,
            _decision(points=points),
            "b#1 inserts data 0 before messages that it has not locked",
        )
        for points in (((0, 1, 0),), ((9, 2, 0),), (None, None))
    ),
    Situation(ReorderLocks, A, heard(B, _data(B, 0))).rejects(
        "the collection of what was not consumed here",
        B,
        _decision(collected=(MessageRange(0, 1, 0, 1),)),
        "b#1 says that all have consumed what a#1 has not",
    ),
    *(
        Situation(ReorderLocksInTurn, B).rejects(
            "a turn that is not the next",
            sender,
            InsertionTurns(turns),
            f"{sender} gives a turn to data {number} of rank {rank}, which is not next",
        )
        for sender, turns, rank, number in (
            (B, ((1, 0),), 1, 0),
            (A, ((3, 0),), 3, 0),
            (A, ((1, 1),), 1, 1),
            (A, ((1, 0), (1, 0)), 1, 0),
        )
    ),
]

REJECTIONS = [*CUTS, *LOCKS]
