"""What is in flight and what is held are bounded, and what does not fit is rejected and counted."""

import pytest

from priocast.core.errors import Overloaded
from priocast.core.quality import ATOMIC, CAUSAL, RELIABLE, TIGHT, Quality, at_least
from priocast.services.packets import ServiceData, TransmissionId
from services.builders import A, B, C
from services.lan import MS, Lan

NEVER = 10**15


@pytest.mark.parametrize("quality", [RELIABLE, ATOMIC, TIGHT])
def test_no_more_is_sent_than_may_be_in_flight(quality: Quality) -> None:
    lan = Lan(3, in_flight_max=2)
    lan.send(0, quality)
    assert lan.services[A].room(quality)
    lan.send(0, quality)
    assert not lan.services[A].room(quality)
    with pytest.raises(Overloaded, match="2 messages are being transmitted"):
        lan.send(0, quality)
    lan.run(100)
    assert lan.services[A].room(quality)
    assert len(lan.receipts) == 2


@pytest.mark.parametrize("quality", [RELIABLE, ATOMIC, TIGHT])
def test_a_member_whose_application_takes_nothing_rejects(quality: Quality) -> None:
    lan = Lan(3, held_max=2)
    lan.consume_at[C] = 200 * MS
    messages = []
    for index in range(4):
        lan.at(index * 20 * MS, lambda: messages.append(lan.send(0, quality)))
    lan.run(150)
    rejected = [lan.receipts[each].rejected for each in messages]
    assert rejected == [{}, {}, {"c": "no room"}, {"c": "no room"}]
    assert [lan.receipts[each].accepted for each in messages] == [True, True, False, False]
    assert lan.services[C].rejections == {"no room": 2}
    assert lan.services[C].held <= 2
    lan.at(210 * MS, lambda: messages.append(lan.send(0, quality)))
    lan.run(400)
    assert lan.receipts[messages[-1]].accepted, "there is room again"
    assert lan.who_delivered(messages[-1]) == "abc"


def test_a_rejected_atomic_message_is_delivered_nowhere() -> None:
    lan = Lan(3, held_max=1)
    lan.consume_at[C] = NEVER
    lan.send(0, ATOMIC)
    lan.run(50)
    second = lan.send(1, ATOMIC)
    lan.run(100)
    assert lan.who_delivered(second) == ""


def test_a_recipient_that_rejects_does_not_count() -> None:
    lan = Lan(4, held_max=1)
    lan.consume_at[C] = NEVER
    lan.send(0, RELIABLE)
    lan.run(50)
    second = lan.send(0, at_least(2))
    lan.run(100)
    assert lan.receipts[second].accepted
    assert set(lan.receipts[second].answered) == {"b", "d"}


def test_who_has_left_takes_no_part() -> None:
    lan = Lan(3, detect_ms=1)
    lan.crash(0)
    lan.run(5)
    late = lan.services[A]
    late.send([b""], RELIABLE, lan.ids, 1, lan.now)
    late.turn(lan.now)
    (multicast,) = late.multicasts
    lan.receive(C, A, multicast.packet)
    lan.run(100)
    assert lan.delivered[C] == []


def test_a_message_that_others_wait_for_is_accepted_without_room() -> None:
    lan = Lan(3, held_max=1)
    lan.lose = lambda _, target, packet: (
        isinstance(packet, ServiceData) and target == C and packet.id.number == 1 and packet.retry == 1
    )
    first, second = lan.send(0, RELIABLE), lan.send(0, RELIABLE)
    lan.run(5)
    assert lan.services[C].held == 1
    lan.run(100)
    assert [each for each, _ in lan.delivered[C]] == [first, second]


def test_a_member_does_not_wait_for_what_it_has_rejected() -> None:
    # Found by seed 2 of a trial: b rejected its own first message, and held the second one back for it. The
    # others knew that nobody waits for the first one, forgot both, and b delivered what the second one caused
    # before the second one.
    lan = Lan(3, held_max=1, ordered=False)
    lan.stall(1, until=101 * MS)
    filling = lan.send(0, CAUSAL, to=[1])
    lan.run(100)
    rejected = lan.send(1, CAUSAL)
    following: list[TransmissionId] = []
    lan.at(101 * MS, lambda: following.append(lan.send(1, CAUSAL)))
    lan.run(102)
    assert lan.delivered[B] == [(filling, 0), (following[0], 0)], "at once"
    lan.run(200)
    assert lan.receipts[rejected].rejected == {"b": "no room"}
