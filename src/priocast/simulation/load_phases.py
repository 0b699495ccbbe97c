"""Phases of a load: senders broadcast at regular intervals, which change, pause and resume at given times.

A study needs the same load in the simulator and on real processes, and knows the true rates at any time.
"""

from collections.abc import Sequence
from typing import NamedTuple

from priocast.simulation.seeded_random import SeededRandom

_SECOND_US = 1_000_000
_JITTER_PERCENT = 5


class LoadPhase(NamedTuple):
    """From a time on, a member (by its index) broadcasts at this interval; 0: it pauses."""

    member: int
    from_us: int
    interval_us: int


def phases_of(rates: Sequence[float], from_us: int) -> tuple[LoadPhase, ...]:
    """Constant rates, in messages per second, one for each member; 0: it does not send."""
    return tuple(
        LoadPhase(index, from_us, round(_SECOND_US / rate) if rate else 0) for index, rate in enumerate(rates)
    )


def broadcast_times_us(
    phases: Sequence[LoadPhase], member: int, until_us: int, random: SeededRandom
) -> list[int]:
    """When a member broadcasts, before `until_us`; intervals vary by a twentieth of their length."""
    own = sorted(phase for phase in phases if phase.member == member)
    ends = [phase.from_us for phase in own[1:]] + [until_us]
    found = []
    for phase, end in zip(own, ends, strict=True):
        if not phase.interval_us:
            continue
        jitter = phase.interval_us * _JITTER_PERCENT // 100
        # Members that start together do not send together.
        time = phase.from_us + random.randint(0, phase.interval_us - 1)
        while time < min(end, until_us):
            found.append(time)
            time += phase.interval_us + random.randint(-jitter, jitter)
    return found


def rate_at(phases: Sequence[LoadPhase], member: int, time_us: int) -> float:
    """How many messages per second a member broadcasts at a time."""
    begun = [phase for phase in sorted(phases) if phase.member == member and phase.from_us <= time_us]
    return _SECOND_US / begun[-1].interval_us if begun and begun[-1].interval_us else 0.0
