"""Causal order: what waits for what, and when the histories shrink."""

import pytest

from priocast.core.quality import CAUSAL
from priocast.services.causal_order import CausalOrder
from priocast.services.packets import Predecessor, ServiceData
from priocast.services.received import ReceivedMessages
from services.builders import A, B, C, D, data, message
from services.lan import MS, Lan
from services.trials import run_trial


def histories(lan: Lan) -> list[int]:
    return [len(lan.services[each]._disseminated.history) for each in lan.alive]


def test_a_message_waits_for_those_in_its_history_that_are_addressed_to_this_member() -> None:
    received = ReceivedMessages()
    causal = CausalOrder(B, received)
    cause, elsewhere = message(A, 1), message(A, 2)
    history = (Predecessor(cause, (B, C)), Predecessor(elsewhere, (C, D)))
    later = data(message(C, 1), CAUSAL, history=history)
    received.add(later.id)
    assert causal.on_arrived(later) == []
    assert causal.awaited() == [cause]
    received.add(cause)
    assert len(causal.on_arrived(data(cause, CAUSAL, recipients=(B, C)))) == 2
    assert list(causal.history) == [cause, later.id, elsewhere]
    assert [each.id for each in causal.take_heard_of()] == [elsewhere]


def test_a_message_leaves_the_history_after_those_that_caused_it() -> None:
    causal = CausalOrder(A, ReceivedMessages())
    first = data(message(A, 1), CAUSAL)
    second = data(message(A, 2), CAUSAL, history=(Predecessor(first.id, first.recipients),))
    causal.on_send(first)
    causal.on_send(second)
    causal.on_settled(second.id)
    assert list(causal.history) == [first.id, second.id]
    causal.on_settled(first.id)
    assert not causal.history


def test_a_message_that_is_settled_before_it_is_delivered_leaves_the_history() -> None:
    received = ReceivedMessages()
    causal = CausalOrder(B, received)
    cause = message(A, 1)
    later = data(message(C, 1), CAUSAL, history=(Predecessor(cause, (B, C)),))
    received.add(later.id)
    causal.on_arrived(later)
    causal.on_settled(later.id)
    received.add(cause)
    assert len(causal.on_arrived(data(cause, CAUSAL, recipients=(B, C)))) == 2
    causal.on_settled(cause)
    assert not causal.history


def test_what_has_left_does_not_come_back_with_the_history_of_another() -> None:
    received = ReceivedMessages()
    causal = CausalOrder(B, received)
    cause = data(message(A, 1), CAUSAL)
    received.add(cause.id)
    causal.on_arrived(cause)
    causal.on_settled(cause.id)
    later = data(message(C, 1), CAUSAL, history=(Predecessor(cause.id, cause.recipients),))
    received.add(later.id)
    causal.on_arrived(later)
    assert list(causal.history) == [later.id]


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_histories_become_empty_when_all_is_settled(seed: int, bounded: bool) -> None:
    lan = run_trial(CAUSAL, seed, bounded=bounded)
    assert sum(len(each) for each in lan.delivered.values()) > 0
    assert histories(lan) == [0] * len(lan.alive)


def test_a_member_asks_about_messages_that_it_only_heard_of() -> None:
    """Member a sends to b, b then sends to c, which is no recipient of the first message."""
    lan = Lan(4)
    lan.lose = lambda _, target, packet: isinstance(packet, ServiceData) and target == D and lan.now < 15 * MS
    lan.send(0, CAUSAL, to=[0, 1, 3])
    lan.at(3 * MS, lambda: lan.send(1, CAUSAL, to=[1, 2]))
    lan.run(9)
    assert histories(lan)[2] > 0
    lan.run(500)
    assert histories(lan) == [0, 0, 0, 0]


def test_it_asks_the_recipients_if_the_sender_has_failed() -> None:
    lan = Lan(4, omission_degree=None)
    lan.lose = lambda source, target, _: lan.now < 900 * MS and D in (source, target)
    first = lan.send(0, CAUSAL, to=[1, 3])
    lan.at(3 * MS, lambda: lan.send(1, CAUSAL, to=[1, 2]))
    lan.at(5 * MS, lambda: lan.crash(0))
    lan.run(800)
    assert histories(lan)[1] > 0, "d may still receive the first message"
    lan.run(4000)
    assert lan.who_delivered(first) == "bd"
    assert histories(lan) == [0, 0, 0]


@pytest.mark.parametrize(("limit", "value"), [("HISTORY_MAX", 1), ("HISTORY_RECIPIENTS_MAX", 2)])
def test_without_room_in_the_history_nothing_is_sent(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"priocast.services.disseminated.{limit}", value)
    lan = Lan(2)
    lan.send(0, CAUSAL)
    assert not lan.services[A].room(CAUSAL)
    lan.run(100)
    assert lan.services[A].room(CAUSAL)


def test_a_message_that_a_failed_member_never_received_leaves_the_history_with_it() -> None:
    lan = Lan(3, detect_ms=500)
    lan.crash(2)
    lan.send(0, CAUSAL)
    lan.run(400)
    assert lan.receipts and histories(lan) == [1, 1], "c has not answered, and is still a member"
    lan.run(1000)
    assert histories(lan) == [0, 0]
