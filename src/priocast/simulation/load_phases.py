"""Phases of a load: the rates at which members broadcast change at given times, down to a pause.

A study needs the same load in the simulator and on real processes, and knows the true rates at any time.
"""

from collections.abc import Sequence
from typing import NamedTuple

from priocast.simulation.seeded_random import SeededRandom

_SECOND_US = 1_000_000
_JITTER_PERCENT = 5


class LoadPhase(NamedTuple):
    """From a time on, a member (by its index) broadcasts at this rate; 0: it pauses."""

    member: int
    from_us: int
    rate_per_second: float


def phases_of(rates: Sequence[float], from_us: int) -> tuple[LoadPhase, ...]:
    """Constant rates, one for each member."""
    return tuple(LoadPhase(index, from_us, rate) for index, rate in enumerate(rates))


def phases_by_turns(
    rates: Sequence[float], percents: Sequence[int], phase_us: int, count: int
) -> tuple[LoadPhase, ...]:
    """Each member has its rate at each of these percents in turn; the next member begins with the next."""
    return tuple(
        LoadPhase(index, number * phase_us, rate * percents[(number + index) % len(percents)] / 100)
        for index, rate in enumerate(rates)
        for number in range(count)
    )


def broadcast_times_us(
    phases: Sequence[LoadPhase], member: int, until_us: int, random: SeededRandom
) -> list[int]:
    """When a member broadcasts, before `until_us`; intervals vary by a twentieth of their length."""
    own = sorted(phase for phase in phases if phase.member == member)
    ends = [phase.from_us for phase in own[1:]] + [until_us]
    found = []
    for phase, end in zip(own, ends, strict=True):
        if not phase.rate_per_second:
            continue
        interval_us = round(_SECOND_US / phase.rate_per_second)
        jitter = interval_us * _JITTER_PERCENT // 100
        # Members that start together do not send together.
        time = phase.from_us + random.randint(0, interval_us - 1)
        while time < min(end, until_us):
            found.append(time)
            time += interval_us + random.randint(-jitter, jitter)
    return found


def rate_at(phases: Sequence[LoadPhase], member: int, time_us: int) -> float:
    """How many messages per second a member broadcasts at a time."""
    begun = [phase for phase in sorted(phases) if phase.member == member and phase.from_us <= time_us]
    return begun[-1].rate_per_second if begun else 0.0
