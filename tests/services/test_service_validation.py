"""Packets that no correct member sends are rejected, and change nothing."""

import msgspec
import pytest

from priocast.core.errors import Rejected
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    Quality,
    QualityKind,
    at_least_to,
    best_effort,
    delta,
)
from priocast.services.packets import (
    Closed,
    Inquiry,
    Knowledge,
    MessageDecision,
    MessagePacket,
    Predecessor,
    Report,
    Response,
    ServiceStream,
    StatusRequest,
    Undecided,
)
from services.builders import A, B, C, D, data, message
from services.lan import Lan

THEIRS, MINE = message(B), message(A)
ATOMIC_THEIRS, ATOMIC_MINE = message(B, 1, ServiceStream.ATOMIC), message(A, 1, ServiceStream.ATOMIC)
TIGHT_THEIRS = message(B, 1, ServiceStream.TIGHT)
RELIABLE_DATA = data(THEIRS, previous=(0, 0, 0))


def changed(**changes: object) -> MessagePacket:
    return msgspec.structs.replace(RELIABLE_DATA, **changes)


#: Packets that member a gets from b, on a network without network order.
WRONG: dict[str, MessagePacket] = {
    "message number 0": changed(id=message(B, 0)),
    "message that was never sent": changed(id=message(A, 3)),
    "message for others": changed(recipients=(B, C, D)),
    "recipient named twice": changed(recipients=(A, B, B)),
    "transmission number 0": changed(retry=0),
    "impossible quality": changed(quality=Quality(QualityKind.RELIABLE, count=2)),
    "quality of another stream": changed(quality=ATOMIC),
    "quality names others": changed(quality=at_least_to("d")),
    "message of another process": data(message(C), best_effort(2), previous=(0, 0, 0)),
    "wrong number of numbers": changed(previous=(0, 0)),
    "previous is later": changed(previous=(1, 0, 0)),
    "open from a later message": changed(open_from=2),
    "too many open messages": changed(id=message(B, 65536)),
    "wrong numbers of units": changed(units=(b"", b""), unit_counts=(1, 2)),
    "no time of sending": changed(quality=delta(20), previous=()),
    "unexpected clock": changed(clock=(3,)),
    "unexpected history": changed(history=(Predecessor(message(C), (A,)),)),
    "impossible history": data(THEIRS, CAUSAL, history=(Predecessor(THEIRS, (A,)),)),
    "response for another process": Response(message(C, 1, ServiceStream.ATOMIC), 1, "", (2,)),
    "impossible insertion point": Response(ATOMIC_MINE, 1),
    "question for another process": StatusRequest(ATOMIC_THEIRS),
    "answer for another process": Closed(ATOMIC_MINE),
    "decision about a message that needs none": MessageDecision(THEIRS, 0, True),
    "decision of a wrong epoch": MessageDecision(message(C, 1, ServiceStream.ATOMIC), 0, True, (2,)),
    "inquiry about a living sender": Inquiry(ATOMIC_MINE, 256),
    "inquiry of a wrong epoch": Inquiry(message(C, 1, ServiceStream.ATOMIC), 3),
    "report about a message that needs none": Report(THEIRS, 256, Knowledge.NOTHING),
}

#: More packets with the same faults.
ALSO_WRONG: list[tuple[str, MessagePacket]] = [
    ("answer for another process", Undecided(ATOMIC_MINE)),
    ("answer for another process", Undecided(THEIRS)),
    ("decision of a wrong epoch", MessageDecision(ATOMIC_THEIRS, 256, True, (2,))),
    ("impossible insertion point", MessageDecision(ATOMIC_THEIRS, 0, True)),
    ("impossible insertion point", MessageDecision(ATOMIC_THEIRS, 0, False, (2,))),
    ("impossible insertion point", Response(ATOMIC_MINE, 1, "", (2,), (2,))),
    ("impossible insertion point", Response(ATOMIC_MINE, 1, "", (2, 0))),
    ("impossible insertion point", Response(ATOMIC_MINE, 1, "no room", (2,))),
    ("impossible insertion point", Report(message(C, 1, ServiceStream.ATOMIC), 256, Knowledge.HELD, 1)),
    ("impossible quality", changed(quality=Quality(QualityKind.RELIABLE, acknowledged=True))),
    ("impossible quality", changed(quality=Quality(QualityKind.AT_LEAST, count=0))),
    ("impossible quality", changed(quality=Quality(QualityKind.BEST_EFFORT))),
    ("impossible quality", changed(quality=Quality(QualityKind.DELTA))),
    ("wrong numbers of units", changed(units=(b"", b""), unit_counts=(2,))),
    ("wrong numbers of units", changed(units=(b"", b""), unit_counts=(2, 0))),
    ("unexpected clock", data(ATOMIC_THEIRS, ATOMIC, clock=(2, 0))),
    ("quality of another stream", data(TIGHT_THEIRS, ATOMIC)),
    ("message of another process", data(message(C, 1, ServiceStream.TIGHT), TIGHT)),
]


def lan_after_sending() -> Lan:
    """Member a has sent one reliable and one atomic message."""
    lan = Lan(3, ordered=False)
    lan.send(0, RELIABLE)
    lan.send(0, ATOMIC)
    lan.run(100)
    lan.frames.clear()
    return lan


@pytest.mark.parametrize(("reason", "packet"), [*WRONG.items(), *ALSO_WRONG])
def test_a_wrong_packet_is_rejected(reason: str, packet: MessagePacket) -> None:
    lan = lan_after_sending()
    with pytest.raises(Rejected) as error:
        lan.receive(A, B, packet)
    assert error.value.reason == reason
    lan.run(1000)
    assert all(not isinstance(each, MessagePacket) for _, each in lan.frames), "nothing follows from it"


def test_a_right_packet_is_not_rejected() -> None:
    lan = lan_after_sending()
    lan.receive(A, B, RELIABLE_DATA)
    assert (THEIRS, 0) in lan.delivered[A]


def test_a_point_that_the_recipient_did_not_propose_is_rejected() -> None:
    lan = lan_after_sending()
    lan.receive(A, B, data(ATOMIC_THEIRS, ATOMIC))
    with pytest.raises(Rejected, match="insertion point not possible"):
        lan.receive(A, B, MessageDecision(ATOMIC_THEIRS, 0, True, (1,)))
    assert lan.who_delivered(ATOMIC_THEIRS) == ""


def test_only_the_monitor_that_asked_decides() -> None:
    lan = lan_after_sending()
    lan.receive(A, B, data(ATOMIC_THEIRS, ATOMIC))
    with pytest.raises(Rejected, match="decision without an inquiry"):
        lan.receive(A, C, MessageDecision(ATOMIC_THEIRS, 256 + 2, True, (9,)))
    with pytest.raises(Rejected, match="by a process that may not decide"):
        lan.receive(A, C, MessageDecision(ATOMIC_THEIRS, 256 + 1, True, (9,)))


def test_a_recipient_does_not_answer_a_monitor_while_the_sender_is_a_member() -> None:
    lan = lan_after_sending()
    lan.receive(A, C, Inquiry(ATOMIC_THEIRS, 256 + 2))
    assert [each for _, each in lan.frames] == [Report(ATOMIC_THEIRS, 256 + 2, Knowledge.WAITS)]
    lan.receive(A, B, data(ATOMIC_THEIRS, ATOMIC))
    assert isinstance(lan.frames[-1][1], Response), "it can still be accepted"
