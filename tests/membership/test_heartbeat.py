"""Heartbeats: everybody is told, but not more often than it needs to be."""

import msgspec

from membership.builders import MILLISECOND, B, alive, options
from priocast.membership.heartbeat import HeartbeatSchedule

ALIVE = alive(B)
BEAT = 20 * MILLISECOND


def heartbeat(*names: str) -> HeartbeatSchedule:
    found = HeartbeatSchedule(options(), 0)
    for name in names:
        found.meet(name, 0)
    return found


def test_everybody_who_can_be_reached_is_told_regularly() -> None:
    found = heartbeat("b", "c")
    found.heard("b")
    found.heard("c")
    for beat in range(5):
        assert found.say(ALIVE, beat * BEAT) == ["b", "c"]
        assert found.due_at == (beat + 1) * BEAT


def test_other_traffic_takes_the_place_of_two_signs_in_three() -> None:
    found = heartbeat("b")
    found.heard("b")
    told = []
    for beat in range(7):
        found.spoke("b", beat * BEAT)
        told.append(bool(found.say(ALIVE, beat * BEAT)))
    assert told == [True, False, False, True, False, False, True]


def test_news_is_told_in_spite_of_other_traffic() -> None:
    found = heartbeat("b")
    found.heard("b")
    found.say(ALIVE, 0)
    found.spoke("b", BEAT)
    assert found.say(msgspec.structs.replace(ALIVE, leaving=True), BEAT) == ["b"]
    found.spoke("b", 2 * BEAT)
    quiet = msgspec.structs.replace(ALIVE, leaving=True, received=(5,))
    assert found.say(quiet, 2 * BEAT) == [], "how much is held is no news"


def test_who_never_answers_is_told_less_often() -> None:
    found = heartbeat("b")
    told = [bool(found.say(ALIVE, beat * BEAT)) for beat in range(200)]
    assert all(told[:50]) and sum(told[50:]) < 15
    found.heard("b")
    assert found.say(ALIVE, 300 * BEAT) == ["b"]


def test_whom_others_know_is_met_once() -> None:
    found = heartbeat("b")
    found.due_at = 5 * BEAT
    found.hear_of("b", BEAT)
    assert found.due_at == 5 * BEAT
    found.hear_of("c", BEAT)
    assert found.due_at == BEAT and found.say(ALIVE, BEAT) == ["b", "c"]


def test_contacts_are_bounded_and_the_silent_ones_go() -> None:
    found = heartbeat("b")
    found.heard("b")
    for number in range(300):
        found.meet(f"n{number}", 0)
    told = found.say(ALIVE, 0)
    assert len(told) == 256 and "b" in told and "n299" in told
