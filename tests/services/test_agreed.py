"""Atomic and tight messages: what the sender, the recipients and monitors do beyond the named cases."""

import pytest

from priocast.core.errors import Rejected
from priocast.core.quality import ATOMIC, TIGHT, Quality, atomic
from priocast.services.packets import (
    Closed,
    Inquiry,
    MessageDecision,
    ServiceData,
    ServicePacket,
    StatusRequest,
    TransmissionId,
)
from services.builders import A, B, C, D
from services.lan import MS, Lan, lose_nothing


def is_decision(packet: ServicePacket) -> bool:
    return isinstance(packet, MessageDecision)


@pytest.mark.parametrize("ordered", [True, False])
def test_an_atomic_message_is_delivered_everywhere(ordered: bool) -> None:
    lan = Lan(4, ordered=ordered)
    message = lan.send(1, ATOMIC)
    lan.run(100)
    receipt = lan.receipts[message]
    assert lan.who_delivered(message) == "abcd"
    assert receipt.accepted and receipt.rounds == 1
    assert set(receipt.answered) == set("abcd")


@pytest.mark.parametrize("ordered", [True, False])
def test_a_message_to_oneself_needs_no_network(ordered: bool) -> None:
    lan = Lan(3, ordered=ordered)
    message = lan.send(1, ATOMIC, to=[1])
    assert lan.who_delivered(message) == "b"
    assert lan.frames_about(message) == []


def test_messages_of_one_member_are_decided_one_after_the_other() -> None:
    lan = Lan(3)
    messages = [lan.send(0, ATOMIC) for _ in range(4)]
    assert lan.services[A].in_flight == 4
    lan.run(200)
    assert [each for each, _ in lan.delivered[C]] == messages


def test_after_the_last_transmission_a_message_is_rejected_and_the_silent_suspected() -> None:
    lan = Lan(4, detect_ms=10_000)
    lan.crash(3)
    message = lan.send(0, ATOMIC)
    lan.run(100)
    receipt = lan.receipts[message]
    assert not receipt.accepted
    assert receipt.missing == ("d",)
    assert receipt.rounds == 3
    assert lan.suspected == {D}
    assert lan.who_delivered(message) == ""


def test_a_message_whose_recipients_have_all_left_is_not_accepted() -> None:
    lan = Lan(3, omission_degree=None, detect_ms=50)
    lan.crash(2)
    message = lan.send(0, ATOMIC, to=[2])
    lan.run(500)
    assert not lan.receipts[message].accepted


def test_a_recipient_that_leaves_is_not_waited_for() -> None:
    lan = Lan(3, omission_degree=None, detect_ms=50)
    lan.crash(2)
    message = lan.send(0, atomic(acknowledged=True))
    lan.run(500)
    assert lan.receipts[message].accepted
    assert lan.who_delivered(message) == "ab"
    assert lan.services[A].in_flight == 0


def test_a_member_that_missed_too_much_reports_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.services.two_phase_sender.DECISIONS_KEPT", 1)
    lan = Lan(3, lose=lambda _, target, packet: is_decision(packet) and target == C)
    for _ in range(3):
        lan.send(0, ATOMIC)
    lan.run(200)
    assert any(isinstance(each, Closed) for _, each in lan.frames)
    assert C in lan.suspected


def test_a_sender_that_does_not_answer_is_suspected() -> None:
    lan = Lan(3, detect_ms=10_000, lose=lambda _, __, packet: is_decision(packet))
    message = lan.send(0, ATOMIC, to=[1, 2])
    lan.at(6 * MS, lambda: lan.crash(0))
    lan.run(90)
    assert lan.suspected == {A}
    asked = [each for each in lan.frames_about(message) if isinstance(each, StatusRequest)]
    assert len(asked) == 2 * 3


def monitors_of(lan: Lan, message: TransmissionId) -> list[str]:
    return [source for source, each in lan.frames if isinstance(each, Inquiry) and each.id == message]


def test_the_first_recipient_becomes_the_monitor() -> None:
    lan = Lan(4, lose=lambda source, _, packet: is_decision(packet) and source == A)
    message = lan.send(0, ATOMIC, to=[1, 2, 3])
    lan.at(6 * MS, lambda: lan.crash(0))
    lan.run(1000)
    assert monitors_of(lan, message) == ["b"]
    assert lan.who_delivered(message) == "bcd"


def test_a_monitor_that_fails_is_replaced() -> None:
    lan = Lan(4, lose=lambda source, _, packet: is_decision(packet) and source in (A, B))
    message = lan.send(0, ATOMIC, to=[1, 2, 3])
    lan.at(6 * MS, lambda: lan.crash(0))
    lan.at(310 * MS, lambda: lan.crash(1))
    lan.run(3000)
    assert set(monitors_of(lan, message)) >= {"b", "c"}
    assert lan.who_delivered(message) == "bcd", "b delivered it before it failed"


def test_monitors_at_the_same_time_decide_alike() -> None:
    """The recipients do not hear from each other for a while, and all of them become monitors."""
    lan = Lan(4, omission_degree=None)
    message = lan.send(0, ATOMIC, to=[1, 2, 3])
    lan.lose = lambda source, _, packet: (
        (is_decision(packet) and source == A)
        or (not isinstance(packet, ServiceData) and 300 * MS < lan.now < 520 * MS)
    )
    lan.at(6 * MS, lambda: lan.crash(0))
    lan.run(5000)
    assert len(set(monitors_of(lan, message))) > 1
    assert lan.who_delivered(message) == "bcd"


def test_urgent_messages_overtake_on_every_member() -> None:
    lan = Lan(3)
    for each in lan.ids:
        lan.consume_at[each] = 40 * MS
    slow = lan.send(0, TIGHT, priority=1, units=2)
    lan.run(10)
    urgent = lan.send(1, TIGHT, priority=9)
    lan.run(200)
    for each in lan.ids:
        assert lan.delivered[each] == [(urgent, 0), (slow, 0), (slow, 1)]


@pytest.mark.parametrize("quality", [ATOMIC, TIGHT], ids=str)
def test_a_message_that_was_accepted_where_it_cannot_be_inserted_holds_back_no_other(
    quality: Quality,
) -> None:
    """As after the merge of a partitioned group: the sender has decided without this member."""
    lan = Lan(3, ordered=False)
    lan.lose = lambda *frame: isinstance(frame[2], MessageDecision)
    message = lan.send(0, quality)
    lan.run(8)
    with pytest.raises(Rejected, match="insertion point not possible"):
        lan.receive(C, A, MessageDecision(message, 0, accepted=True, point=(1,)))
    lan.lose = lose_nothing
    later = lan.send(1, quality)
    lan.run(1_000)
    assert lan.who_delivered(later) == "abc" and lan.who_delivered(message) == "ab"
