"""Slowness: a member is slow if the order waits for it, for too long, although it could consume."""

from typing import cast

from membership.builders import A, B
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.protocol import Protocol
from priocast.core.stall import Stalls
from priocast.membership.slowness import Slowness


class Waiting:
    """As much of a protocol as it takes: whom it waits for, and how far it is."""

    def __init__(self) -> None:
        self.slowest: ProcessId | None = B
        self.position_next = 10

    def inspect(self, now: int) -> ProtocolInspection:
        return ProtocolInspection(0, [], 0, Stalls(), 0, bottleneck=self.slowest)


def found(slowness: Slowness, protocol: Waiting, now: int, could_consume: bool = True) -> ProcessId | None:
    return slowness.found(cast("Protocol", protocol), could_consume, now)


def test_the_order_waits_for_a_while_and_then_names_the_one() -> None:
    slowness, protocol = Slowness(100, now=0), Waiting()
    assert found(slowness, protocol, 0) is None and found(slowness, protocol, 99) is None
    assert found(slowness, protocol, 100) == B
    assert slowness.waited(100) == (B, 100)


def test_any_progress_begins_the_wait_anew() -> None:
    slowness, protocol = Slowness(100, now=0), Waiting()
    found(slowness, protocol, 0)
    protocol.position_next += 1
    assert found(slowness, protocol, 99) is None and found(slowness, protocol, 198) is None
    assert found(slowness, protocol, 199) == B


def test_another_one_begins_the_wait_anew() -> None:
    slowness, protocol = Slowness(100, now=0), Waiting()
    found(slowness, protocol, 0)
    protocol.slowest = A
    assert found(slowness, protocol, 100) is None
    assert found(slowness, protocol, 200) == A


def test_nobody_is_slow_while_nothing_waits_or_nothing_could_be_consumed() -> None:
    slowness, protocol = Slowness(100, now=0), Waiting()
    assert found(slowness, protocol, 500, could_consume=False) is None
    assert slowness.waited(500) == (None, 0)
    protocol.slowest = None
    assert found(slowness, protocol, 700) is None and found(slowness, protocol, 900) is None
