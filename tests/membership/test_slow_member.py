"""Slow members: a member is slow if the order waits for it, for too long, although it could consume."""

from typing import cast

from membership.builders import A, B
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.protocol_interface import Protocol
from priocast.core.stall import Stalls
from priocast.membership.slow_member import SlowMemberDetector


class Waiting:
    """A protocol with a bottleneck."""

    def __init__(self) -> None:
        self.slowest: ProcessId | None = B
        self.position_next = 10

    def inspect(self, now: int) -> ProtocolInspection:
        return ProtocolInspection(
            backlog=0,
            queues_of=list,
            unconsumed=0,
            stalls=Stalls(),
            stalled_ns=now - now,
            bottleneck=self.slowest,
        )


def found(
    detector: SlowMemberDetector, protocol: Waiting, now: int, could_consume: bool = True
) -> ProcessId | None:
    return detector.found(cast("Protocol", protocol), could_consume, now)


def test_a_bottleneck_is_slow_after_the_configured_time() -> None:
    detector, protocol = SlowMemberDetector(100, now=0), Waiting()
    assert found(detector, protocol, 0) is None and found(detector, protocol, 99) is None
    assert found(detector, protocol, 100) == B
    assert detector.waited(100) == (B, 100)


def test_progress_restarts_the_wait() -> None:
    detector, protocol = SlowMemberDetector(100, now=0), Waiting()
    found(detector, protocol, 0)
    protocol.position_next += 1
    assert found(detector, protocol, 99) is None and found(detector, protocol, 198) is None
    assert found(detector, protocol, 199) == B


def test_another_bottleneck_restarts_the_wait() -> None:
    detector, protocol = SlowMemberDetector(100, now=0), Waiting()
    found(detector, protocol, 0)
    protocol.slowest = A
    assert found(detector, protocol, 100) is None
    assert found(detector, protocol, 200) == A


def test_nobody_is_slow_without_a_bottleneck_or_while_nobody_could_consume() -> None:
    detector, protocol = SlowMemberDetector(100, now=0), Waiting()
    assert found(detector, protocol, 500, could_consume=False) is None
    assert detector.waited(500) == (None, 0)
    protocol.slowest = None
    assert found(detector, protocol, 700) is None and found(detector, protocol, 900) is None
