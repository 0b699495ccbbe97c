"""The schedule of heartbeats: everybody gets them, but not more often than necessary."""

import msgspec

from membership.builders import MILLISECOND, A, B, C, heartbeat, options
from priocast.membership.heartbeat import HeartbeatSchedule
from priocast.membership.options import MEMBERS_MAX

HEARTBEAT = heartbeat(B)
BEAT = 20 * MILLISECOND


def schedule(*names: str) -> HeartbeatSchedule:
    found = HeartbeatSchedule(options(), 0)
    for name in names:
        found.meet(name, 0)
    return found


def test_every_reachable_process_gets_heartbeats_regularly() -> None:
    found = schedule("b", "c")
    found.on_answer("b")
    found.on_answer("c")
    for beat in range(5):
        assert found.recipients(HEARTBEAT, beat * BEAT) == ["b", "c"]
        assert found.due_at == (beat + 1) * BEAT


def test_other_traffic_replaces_two_heartbeats_in_three() -> None:
    found = schedule("b")
    found.on_answer("b")
    sent = []
    for beat in range(7):
        found.sent_at["b"] = beat * BEAT
        sent.append(bool(found.recipients(HEARTBEAT, beat * BEAT)))
    assert sent == [True, False, False, True, False, False, True]


def test_news_is_sent_in_spite_of_other_traffic() -> None:
    found = schedule("b")
    found.on_answer("b")
    found.recipients(HEARTBEAT, 0)
    found.sent_at["b"] = BEAT
    assert found.recipients(msgspec.structs.replace(HEARTBEAT, leaving=True), BEAT) == ["b"]
    found.sent_at["b"] = 2 * BEAT
    quiet = msgspec.structs.replace(HEARTBEAT, leaving=True, received=(5,))
    assert found.recipients(quiet, 2 * BEAT) == [], "how much was received is no news"


def test_a_process_that_never_answers_gets_fewer_heartbeats() -> None:
    found = schedule("b")
    sent = [bool(found.recipients(HEARTBEAT, beat * BEAT)) for beat in range(200)]
    assert all(sent[:50]) and sum(sent[50:]) < 15
    found.on_answer("b")
    assert found.recipients(HEARTBEAT, 300 * BEAT) == ["b"]


def test_a_process_that_others_know_becomes_a_contact_once() -> None:
    found = schedule("b")
    found.due_at = 5 * BEAT
    found.hear_of([A, B], A, BEAT)
    assert found.due_at == 5 * BEAT
    found.hear_of([A, B, C], A, BEAT)
    assert found.due_at == BEAT and found.recipients(HEARTBEAT, BEAT) == ["b", "c"]


def test_contacts_are_bounded_and_silent_ones_are_dropped_first() -> None:
    found = schedule("b")
    found.on_answer("b")
    last = 4 * MEMBERS_MAX + 50
    for number in range(last + 1):
        found.meet(f"n{number}", 0)
    sent = found.recipients(HEARTBEAT, 0)
    assert len(sent) == 4 * MEMBERS_MAX and "b" in sent and f"n{last}" in sent
