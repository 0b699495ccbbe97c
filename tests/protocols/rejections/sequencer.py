"""What the fixed sequencers and their members reject, and parts above them."""

import msgspec

from core.builders import A, B, C, batch_of
from priocast.core.identity import NUMBER_MAX, ProcessId
from priocast.core.message import CONTROL, Reference, pack
from priocast.core.protocol import WINDOW_MAX, Broadcast
from priocast.protocols import find_protocol
from priocast.protocols.flow.packets import Consumed, Data, Order, Ordered, Submit
from priocast.protocols.numbering.packets import (
    Numbered,
    NumberGrant,
    NumberRange,
    NumberRequest,
    RequestNumbers,
)
from priocast.protocols.sequencer.bb import SequencerBb
from priocast.protocols.sequencer.ub import SequencerUb
from priocast.protocols.sequencer.uub import SequencerUub
from protocols.rejections.row import TURN, Situation, heard
from protocols.single_member import number_grant

STRANGER = ProcessId("d")
NOT_THE_SEQUENCER = "c#1 takes b#1 for the sequencer, which is a#1"
FORGED = "c#1 submits a message of b#1"
THREE_ORDERED = heard(A, Ordered(0, (batch_of(2), batch_of(1, sender=C))))
THREE_REFERENCES = heard(A, Order(0, (Reference(A, 0, 0, 2), Reference(C, 0, 0, 1))))
THREE_SUBMITTED = heard(B, Submit((batch_of(3, sender=B),)))


def _requests(*counts: tuple[int, int]) -> RequestNumbers:
    """Number requests, given as count and level, for messages of ten bytes each."""
    return RequestNumbers(tuple(NumberRequest(level, count, 10 * count) for count, level in counts))


def _with_priorities(priorities: bytes) -> Submit:
    return Submit((msgspec.structs.replace(batch_of(2, sender=C), priorities=priorities),))


UB = [
    *(
        Situation(SequencerUb, B).rejects("a packet for the sequencer", C, packet, NOT_THE_SEQUENCER)
        for packet in (Submit((batch_of(1, sender=C),)), Consumed(0, 5))
    ),
    Situation(SequencerUb, A).rejects("a forged sender", C, Submit((batch_of(1, sender=B),)), FORGED),
    *(
        Situation(SequencerUb, A).rejects(
            "priorities of some messages only", C, _with_priorities(some), fault
        )
        for some, fault in ((b"\1", "with 1 priorities"), (b"\1\2\3", "with 3 priorities"))
    ),
    *(
        Situation(SequencerUb, A, heard(C, Submit((batch_of(2, sender=C),)))).rejects(
            "a repeated number or a gap",
            C,
            Submit((batch_of(1, sender=C, first=first),)),
            "number 2 of that level is next",
        )
        for first in (0, 1, 3)
    ),
    Situation(SequencerUb, A).rejects(
        "the last numbers that there are",
        C,
        Submit((pack(C, 0, NUMBER_MAX - 1, [b"", b""]),)),
        "which uses up the numbers",
    ),
    Situation(SequencerUb, B).rejects(
        "a message of a process that is not a member",
        A,
        Ordered(0, (batch_of(1, sender=STRANGER),)),
        "a#1 orders d#1/0/0+1, which no member sent",
    ),
    Situation(
        SequencerUb,
        A,
        heard(C, Submit((batch_of(2, sender=C, first=70), batch_of(1, 5, sender=C, first=9)))),
        heard(C, Submit((batch_of(1, sender=C, first=72), batch_of(1, 5, sender=C, first=10)))),
    ).rejects(
        "a repeated number of a stream that began with 70",
        C,
        Submit((batch_of(1, sender=C, first=71),)),
        "number 73 of that level is next",
    ),
    Situation(
        SequencerUb,
        A,
        heard(C, Submit((batch_of(4, sender=C),))),
        TURN,
        heard(C, Submit((batch_of(1, sender=C, first=4),))),
        submit_max=4,
        window=1,
    ).rejects(
        "more than the credit",
        C,
        Submit((batch_of(1, sender=C, first=5),)),
        "more than its credit of 4 messages",
    ),
    Situation(SequencerUb, B).rejects(
        "an order of another member",
        C,
        Ordered(0, (batch_of(1),)),
        "c#1 orders position 0; expected 0 from a#1",
    ),
    *(
        Situation(SequencerUb, B, THREE_ORDERED).rejects(
            "a gap or a repetition in the order",
            A,
            Ordered(position, (batch_of(1, first=2),)),
            f"orders position {position}; expected 3",
        )
        for position in (0, 2, 4)
    ),
    Situation(SequencerUb, B).rejects(
        "a position for a message that was never submitted",
        A,
        Ordered(0, (batch_of(1, sender=B),)),
        "b#1/0/0+1 is ordered although b#1 never sent it",
    ),
    *(
        Situation(SequencerUb, A, THREE_SUBMITTED, TURN, heard(B, Consumed(2, 16))).rejects(
            "an impossible consumption report",
            B,
            Consumed(total, 16),
            f"b#1 reports {total} messages consumed; it must be between 2, its last report, and 3",
        )
        for total in (0, 1, 4)
    ),
    Situation(SequencerUb, B, position=40).rejects(
        "an order of an earlier view",
        A,
        Ordered(0, (batch_of(1),)),
        "a#1 orders position 0; expected 40 from a#1",
    ),
    Situation(SequencerUb, A, THREE_SUBMITTED, TURN, position=40).rejects(
        "a report of positions instead of counts",
        B,
        Consumed(43, 16),
        "b#1 reports 43 messages consumed; it must be between 0, its last report, and 3",
    ),
    Situation(SequencerUb, A).rejects(
        "consumption before anything is ordered",
        B,
        Consumed(5, 16),
        "b#1 reports 5 messages consumed; it must be between 0, its last report, and 0",
    ),
    Situation(find_protocol("time-parts/sequencer-ub"), A).rejects(
        "a control message of a member that is not the coordinator",
        C,
        Submit((pack(C, CONTROL, 0, [b"1"]),)),
        "c#1 submits a control message; only a#1 may",
    ),
]

BB = [
    Situation(SequencerBb, B).rejects("a packet for the sequencer", C, Consumed(0, 5), NOT_THE_SEQUENCER),
    *(
        Situation(SequencerBb, me).rejects("a forged sender", C, Data((batch_of(1, sender=B),)), FORGED)
        for me in (A, B)
    ),
    *(
        Situation(SequencerBb, me, heard(C, Data((batch_of(2, sender=C),)))).rejects(
            "a repeated number or a gap",
            C,
            Data((batch_of(1, sender=C, first=first),)),
            "number 2 of that level is next",
        )
        for me in (A, B)
        for first in (0, 1, 3)
    ),
    Situation(
        SequencerBb,
        B,
        *(heard(C, Data((batch_of(4096, sender=C, first=first),))) for first in range(0, WINDOW_MAX, 4096)),
        heard(C, Data((batch_of(4, sender=C, first=WINDOW_MAX),))),
        submit_max=4,
    ).rejects(
        "more unordered messages than possible",
        C,
        Data((batch_of(1, sender=C, first=WINDOW_MAX + 4),)),
        "more than its credit of 65540 messages",
    ),
    Situation(SequencerBb, B).rejects(
        "an order of another member",
        C,
        Order(0, (Reference(C, 0, 0, 1),)),
        "c#1 orders position 0; expected 0 from a#1",
    ),
    *(
        Situation(SequencerBb, B, THREE_REFERENCES).rejects(
            "a gap or a repetition in the order, whether the messages are here or not",
            A,
            Order(position, (Reference(A, 0, 2, 1),)),
            f"a#1 orders position {position}; expected 3 from a#1",
        )
        for position in (0, 2, 4)
    ),
    *(
        Situation(SequencerBb, B, heard(A, Order(0, (Reference(C, 5, 0, 2),)))).rejects(
            "a message that is ordered already or skips its equals",
            A,
            Order(2, (Reference(C, 5, first, 1),)),
            f"a#1 orders c#1/5/{first}+1; number 2 of a member",
        )
        for first in (0, 1, 3)
    ),
    Situation(SequencerBb, B).rejects(
        "a message of a process that is not a member",
        A,
        Order(0, (Reference(STRANGER, 0, 0, 1),)),
        "a#1 orders d#1/0/0",
    ),
    *(
        Situation(SequencerBb, B, heard(C, Data((batch_of(9, sender=C, first=7),)))).rejects(
            "a reference that skips received messages",
            A,
            Order(0, (Reference(C, 0, first, 1),)),
            f"c#1/0/{first}+1 is ordered; number 7 is next",
        )
        for first in (6, 8)
    ),
    Situation(SequencerBb, B, heard(A, Order(0, (Reference(B, 0, 0, 1),)))).rejects(
        "a position for a message that was never sent",
        B,
        Data((batch_of(1, sender=B),)),
        "b#1/0/0+1 is ordered although b#1 never sent it",
    ),
    Situation(SequencerBb, A, heard(B, Data((batch_of(3, sender=B),))), TURN).rejects(
        "an impossible consumption report",
        B,
        Consumed(4, 16),
        "b#1 reports 4 messages consumed; it must be between 0, its last report, and 3",
    ),
]

UUB = [
    *(
        Situation(SequencerUub, B).rejects("a packet for the sequencer", C, packet, NOT_THE_SEQUENCER)
        for packet in (_requests((1, 0)), Consumed(0, 5))
    ),
    Situation(
        SequencerUub,
        A,
        heard(C, _requests((4, 5))),
        TURN,
        heard(C, _requests((1, 9))),
        submit_max=4,
        window=1,
    ).rejects(
        "a request beyond the credit", C, _requests((1, 9)), "c#1 requests more than its credit of 4 numbers"
    ),
    *(
        Situation(SequencerUub, B, Broadcast(batch_of(3, 5, sender=B)), TURN, position=40).rejects(
            f"a grant {whose}", sender, grant, fault
        )
        for whose, sender, grant, fault in (
            ("of another member", C, number_grant(40, 1), "c#1 grants numbers; only a#1 may"),
            ("of a number that is used", A, number_grant(39, 1), "a#1 grants 1 numbers from 39 on"),
            ("of more than was requested", A, number_grant(40, 4), "a#1 grants 4 numbers from 40 on; 3 were"),
            (
                "of more than was requested, in two pieces",
                A,
                NumberGrant((NumberRange(40, 2), NumberRange(50, 2))),
                "a#1 grants 2 numbers from 50 on; 1 were",
            ),
            (
                "of numbers twice",
                A,
                NumberGrant((NumberRange(40, 2), NumberRange(41, 1))),
                "a#1 grants 1 numbers from 41 on; 1 were requested, not before 42",
            ),
        )
    ),
    Situation(
        SequencerUub, B, Broadcast(batch_of(3, 5, sender=B)), TURN, heard(A, number_grant(5, 1))
    ).rejects("grants out of order", A, number_grant(4, 1), "not before 6"),
    *(
        Situation(SequencerUub, B, heard(A, Numbered(0, (batch_of(2),)))).rejects(
            "a number that was used before",
            C,
            Numbered(position, (batch_of(1, sender=C),)),
            f"c#1 orders position {position}; 2 is next",
        )
        for position in (0, 1)
    ),
    Situation(SequencerUub, B, heard(A, Numbered(3, (batch_of(2),)))).rejects(
        "a number that was used and waits for earlier ones",
        C,
        Numbered(3, (batch_of(1, sender=C),)),
        "c#1 orders position 3; 0 is next",
    ),
    *(
        Situation(SequencerUub, A, heard(B, _requests((2, 0))), TURN).rejects(
            f"numbers that were not granted: {what}",
            sender,
            Numbered(position, (batch_of(count, sender=sender),)),
            f"{sender} uses numbers from {position} on, which it was not granted",
        )
        for what, sender, position, count in (
            ("whose", C, 0, 1),
            ("which", B, 1, 1),
            ("how many", B, 0, 3),
            ("not even to others", B, 2, 1),
        )
    ),
    Situation(SequencerUub, B).rejects("a forged sender", C, Numbered(0, (batch_of(1, sender=B),)), FORGED),
    Situation(SequencerUub, B, heard(C, Numbered(0, (batch_of(1, sender=C),)))).rejects(
        "skipped equals", C, Numbered(1, (batch_of(1, sender=C, first=2),)), "number 1 of that level is next"
    ),
    Situation(SequencerUub, A).rejects(
        "consumption of numbers that were not granted",
        B,
        Consumed(5, 16),
        "b#1 reports 5 messages consumed; it must be between 0, its last report, and 0",
    ),
]

REJECTIONS = [*UB, *BB, *UUB]
