"""Messages that share a transmission: which ones do, and that nobody but the network can tell."""

from collections import deque

import msgspec
import pytest

from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX
from priocast.core.quality import ATOMIC, RELIABLE, TIGHT, Quality, best_effort
from priocast.services.outgoing import take_joined
from priocast.services.packets import ServiceData
from priocast.services.units import deliveries_of
from services.builders import A, B, C, data, message
from services.lan import MS, Lan
from services.test_promises import QUALITIES, SEEDS
from services.trials import run_trial, violations


def taken(*waiting: ServiceData) -> list[list[int]]:
    """The numbers of the messages of each transmission."""
    queue, found = deque(waiting), []
    while queue:
        joined = take_joined(queue)
        deliveries = deliveries_of(joined)
        assert [each.payload for each in deliveries] == list(joined.units)
        found.append([each.number for each in deliveries if each.index == 0])
    return found


def test_consecutive_messages_that_are_alike_share_a_transmission() -> None:
    assert taken(*(data(message(A, number)) for number in (1, 2, 3))) == [[1, 2, 3]]
    assert taken(data(message(A, 1)), data(message(A, 2), units=3), data(message(A, 3))) == [[1, 2, 3]]


@pytest.mark.parametrize(
    "other",
    [
        data(message(A, 2), priority=2),
        data(message(A, 2), quality=best_effort(1)),
        data(message(A, 2), recipients=(B, C)),
        data(message(A, 3)),
    ],
    ids=["priority", "quality", "recipients", "gap"],
)
def test_messages_that_differ_do_not(other: ServiceData) -> None:
    number = other.id.number
    assert taken(data(message(A, 1)), other) == [[1], [number]]


def test_a_transmission_has_a_limited_size() -> None:
    half = data(message(A, 1), units=1)
    half = msgspec.structs.replace(half, units=(bytes(BATCH_BYTES_CUT // 2),))
    other = msgspec.structs.replace(half, id=message(A, 2))
    too_long = msgspec.structs.replace(other, units=(bytes(BATCH_BYTES_CUT // 2 + 1),))
    assert taken(half, other) == [[1, 2]]
    assert taken(half, too_long) == [[1], [2]]
    many = data(message(A, 1), units=BATCH_COUNT_MAX - 1)
    assert taken(many, data(message(A, 2)), data(message(A, 3))) == [[1, 2], [3]]


@pytest.mark.parametrize("quality", QUALITIES, ids=str)
def test_every_call_has_a_receipt_and_one_transmission_carries_them(quality: Quality) -> None:
    lan = Lan(3)
    lan.run(300)
    messages = lan.send_together(5, 0, quality)
    assert len(set(messages)) == 5
    lan.run(1000)
    sent = [each for _, each in lan.frames if isinstance(each, ServiceData)]
    assert [len(each.units) for each in sent] == [5]
    assert {each: lan.receipts[each].accepted for each in messages} == dict.fromkeys(messages, True)
    assert len({lan.receipts[each].answered for each in messages}) == 1
    for process in lan.ids:
        assert [each for each, _ in lan.delivered[process]] == messages


def test_transmissions_that_wait_are_joined_once_more() -> None:
    """What was sent together in one turn can wait for a decision, and join what was sent in the next turn."""
    lan = Lan(3)
    messages = [each for count in (1, 2, 3) for each in lan.send_together(count, 0, ATOMIC)]
    lan.run(200)
    sent = [each.unit_counts for _, each in lan.frames if isinstance(each, ServiceData)]
    assert sent == [(), (1, 1, 1, 1, 1)]
    assert [each for each, _ in lan.delivered[C]] == messages
    assert all(lan.receipts[each].accepted for each in messages)


@pytest.mark.parametrize("quality", [ATOMIC, TIGHT], ids=str)
def test_messages_that_wait_for_a_decision_share_the_next_transmission(quality: Quality) -> None:
    lan = Lan(3)
    messages = [lan.send(0, quality) for _ in range(4)]
    lan.run(200)
    sent = [each for _, each in lan.frames if isinstance(each, ServiceData)]
    assert [len(each.units) for each in sent] == [1, 3]
    assert all(lan.receipts[each].accepted for each in messages)


def test_urgent_messages_overtake_within_a_shared_transmission() -> None:
    """All applications take nothing for a while; then the urgent message comes before the others."""
    lan = Lan(3)
    for each in lan.ids:
        lan.consume_at[each] = 30 * MS
    routine = lan.send_together(3, 0, TIGHT)
    lan.run(20)
    urgent = lan.send(1, TIGHT, priority=9)
    lan.run(200)
    assert [each for each, _ in lan.delivered[C]] == [urgent, *routine]


def test_what_was_sent_and_not_transmitted_makes_a_turn_due() -> None:
    lan = Lan(3)
    services = lan.services[A]
    services.send([b""], RELIABLE, lan.ids, 1, lan.now)
    assert services.deadline(lan.now) == lan.now
    assert services.in_flight == 1
    services.tick(lan.now)
    assert [each.packet.id for each in services.multicasts if isinstance(each.packet, ServiceData)]


@pytest.mark.parametrize("quality", QUALITIES, ids=str)
def test_promises_hold_if_messages_are_sent_together(quality: Quality) -> None:
    for seed in range(SEEDS // 2):
        lan = run_trial(quality, seed, bounded=True, crashes=seed % 3, together=3)
        assert violations(lan) == [], f"seed {seed}"
