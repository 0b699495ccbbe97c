"""The time service: the precision that it states bounds the true error."""

import random

import pytest

from priocast.core.view import View
from priocast.services.clock import VirtualClock
from priocast.services.outputs import Multicast
from priocast.services.packets import TimeReply, TimeRequest
from services.builders import A, B, C
from services.lan import MS

SECOND = 1_000_000_000


class Drifting:
    """A local clock that runs fast or slow: it shows another time than the true one."""

    def __init__(self, start: int, per_million: int) -> None:
        self._start = start
        self._per_million = per_million

    def at(self, true: int) -> int:
        return self._start + true + true * self._per_million // 1_000_000


def exchange(
    rnd: random.Random,
    clocks: tuple[VirtualClock, Drifting],
    reference: tuple[VirtualClock, Drifting],
    true: int,
) -> int:
    """One request and one reply with random delays; returns the true time afterwards."""
    (mine, my_clock), (theirs, their_clock) = clocks, reference
    (request,) = mine.on_tick(my_clock.at(true))
    assert isinstance(request, Multicast) and isinstance(request.packet, TimeRequest)
    true += rnd.randint(MS // 10, 20 * MS)
    (reply,) = theirs.on_request(B, request.packet, their_clock.at(true))
    assert isinstance(reply, Multicast) and isinstance(reply.packet, TimeReply)
    true += rnd.randint(MS // 10, 20 * MS)
    mine.on_reply(A, reply.packet, my_clock.at(true))
    return true


@pytest.mark.parametrize("seed", range(20))
def test_the_precision_bounds_the_true_error(seed: int) -> None:
    rnd = random.Random(seed)
    view = View(1, (A, B))
    drifts = rnd.randint(-90, 90), rnd.randint(-90, 90)
    coordinator, reference = VirtualClock(A), Drifting(rnd.randint(0, SECOND), drifts[0])
    clock, local = VirtualClock(B), Drifting(rnd.randint(0, SECOND), drifts[1])
    coordinator.on_view(view, reference.at(0))
    clock.on_view(view, local.at(0))
    true, last = 0, 0
    for _ in range(60):
        true = exchange(rnd, (clock, local), (coordinator, reference), true)
        for _ in range(5):
            true += rnd.randint(0, 25 * MS)
            shown, precision = clock.time(local.at(true)), clock.precision_ns(local.at(true))
            assert precision is not None
            assert abs(shown - coordinator.time(reference.at(true))) <= precision + 2
            assert shown >= last, "it never runs backwards"
            last = shown
        true += 120 * MS


def test_precision_is_unknown_until_the_coordinator_answers() -> None:
    clock = VirtualClock(B)
    assert clock.precision_ns(0) is None
    clock.on_view(View(1, (A, B)), 0)
    assert clock.precision_ns(0) is None


def test_the_coordinator_is_the_reference() -> None:
    clock = VirtualClock(A)
    clock.on_view(View(1, (A, B)), 5)
    assert clock.time(7) == 7
    assert clock.precision_ns(7) == 0
    assert clock.deadline is None


def test_a_new_coordinator_keeps_its_clock_and_goes_on() -> None:
    clock = VirtualClock(B)
    clock.on_view(View(1, (A, B)), 0)
    clock.on_tick(0)
    clock.on_reply(A, TimeReply(1, 1000), 10)
    assert clock.time(10) == 1005
    clock.on_view(View(2, (B,)), 20)
    assert clock.time(20) == 1015
    assert clock.time(30) == 1025


def test_a_new_reference_has_to_be_asked() -> None:
    clock = VirtualClock(C)
    clock.on_view(View(1, (A, B, C)), 0)
    clock.on_tick(0)
    clock.on_reply(A, TimeReply(1, 1000), 10)
    assert clock.precision_ns(10) == 5
    clock.on_view(View(2, (B, C)), 20)
    assert clock.precision_ns(20) is None
    (request,) = clock.on_tick(20)
    assert isinstance(request, Multicast) and request.to == (B,)


def test_answers_of_others_and_to_nothing_are_ignored() -> None:
    clock = VirtualClock(C)
    clock.on_view(View(1, (A, B, C)), 0)
    clock.on_reply(A, TimeReply(7, 1000), 10)
    clock.on_tick(20)
    clock.on_reply(B, TimeReply(1, 1000), 30)
    assert clock.precision_ns(30) is None
