"""View changes: how long the group takes to go on without a member, and what it delivers meanwhile.

The time is from the event (a kill, a wish to leave, a call of `join`) to the moment when the last of those
who go on has the new view in its stream. A failure cannot be noticed before `failure_ms`, which is the unit.
Who leaves a busy group waits first until all that it has broadcast has its place. The rate is that of the
slowest of those who go on, in the second that begins with the event, as a part of its rate in the one before.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.crew import FAILURE_MS, Crew

FOUNDERS = 4
_BURST = 64
_PAYLOAD_BYTES = 64
_CALM_SECONDS = 0.5
_STEADY_SECONDS = 1.0


@dataclass(frozen=True)
class Change:
    """One kind of view change: what happens, to whom, and who goes on."""

    name: str
    happen: Callable[[Crew], float]
    staying: frozenset[int]
    joiners: int = 0


@dataclass
class Measured:
    """What one kind of view change took, run by run."""

    change: Change
    seconds: list[float] = field(default_factory=list)
    seconds_loaded: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    @property
    def multiples(self) -> list[float]:
        """The times of a calm group, in multiples of the silence that makes a failure."""
        return [seconds * 1000 / FAILURE_MS for seconds in self.seconds]


def _join(crew: Crew) -> float:
    crew.start(FOUNDERS)
    return crew.joined_at(FOUNDERS)


ALL = frozenset(range(FOUNDERS))
CHANGES = (
    Change("kill -9 of a member", lambda crew: crew.kill(FOUNDERS - 1), ALL - {FOUNDERS - 1}),
    Change("kill -9 of the coordinator", lambda crew: crew.kill(0), ALL - {0}),
    Change("a member leaves", lambda crew: crew.tell(FOUNDERS - 1, "leave"), ALL - {FOUNDERS - 1}),
    Change("the coordinator leaves", lambda crew: crew.tell(0, "leave"), ALL - {0}),
    Change("a member joins", _join, ALL | {FOUNDERS}, joiners=1),
)


def measure(change: Change, runs: int) -> Measured:
    """Let a change happen so often, in a calm group and in one that is busy."""
    measured = Measured(change)
    for _ in range(runs):
        measured.seconds.append(_calm(change))
        seconds, rate = _busy(change)
        measured.seconds_loaded.append(seconds)
        measured.rates.append(rate)
    return measured


def _calm(change: Change) -> float:
    crew = Crew(FOUNDERS, change.joiners, burst=0, payload_bytes=_PAYLOAD_BYTES)
    try:
        crew.wait_view(set(ALL))
        crew.wait_seconds(_CALM_SECONDS)
        happened = change.happen(crew)
        return crew.wait_view(set(change.staying)) - happened
    finally:
        crew.end()


def _busy(change: Change) -> tuple[float, float]:
    """The time, and the rate around the event as a part of the steady rate."""
    crew = Crew(FOUNDERS, change.joiners, burst=_BURST, payload_bytes=_PAYLOAD_BYTES)
    try:
        crew.wait_view(set(ALL))
        crew.wait_seconds(_CALM_SECONDS + _STEADY_SECONDS)
        happened = change.happen(crew)
        took = crew.wait_view(set(change.staying)) - happened
        crew.wait_seconds(max(0.0, _STEADY_SECONDS - took) + 0.1)
    finally:
        crew.end()
    before, after = happened - _STEADY_SECONDS, happened + _STEADY_SECONDS
    staying = change.staying & ALL
    steady = min(crew.rate(me, before, happened) for me in staying)
    return took, min(crew.rate(me, happened, after) for me in staying) / steady


def spread(values: list[float], form: str) -> str:
    """The median, and from where to where."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({low:{form}}-{high:{form}})"
