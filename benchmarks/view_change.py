"""View changes: how long the group takes to install the next view, and what it delivers meanwhile.

The time is from the event (a kill, the start of a leave, a call of `join`) until the application of the last
survivor has the new view. A failure cannot be noticed before `failure_ms`, which is the unit. A member that
leaves a busy group waits first until all its broadcasts are ordered. The rate is that of the slowest survivor
in the second after the event, as a fraction of its rate in the second before.
"""

import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.load_group import LoadGroup

from priocast.membership.options import MembershipOptions
from priocast.testing.addresses import free_addresses
from priocast.testing.process_group import member_name

FOUNDERS = 4
HEARTBEAT_MS = 50.0
FAILURE_MS = 500.0
_BURST = 64
_CALM_RATE = 100
_PAYLOAD_BYTES = 64
_REPORT_MS = 10.0
_CALM_SECONDS = 0.5
_STEADY_SECONDS = 1.0
_LIMIT_SECONDS = 60.0

FOUNDER_NAMES = tuple(map(member_name, range(FOUNDERS)))
COORDINATOR, LAST, JOINER = FOUNDER_NAMES[0], FOUNDER_NAMES[-1], member_name(FOUNDERS)


@dataclass(frozen=True)
class Change:
    """One kind of view change: the event, which returns its time, and the members of the next view."""

    name: str
    trigger: Callable[[LoadGroup], float]
    members: tuple[str, ...]


@dataclass
class ViewChangeResults:
    """The times of one kind of view change, run by run."""

    change: Change
    seconds: list[float] = field(default_factory=list)
    seconds_loaded: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    @property
    def multiples(self) -> list[float]:
        """The times of a calm group, in multiples of `failure_ms`."""
        return [seconds * 1000 / FAILURE_MS for seconds in self.seconds]


def _kill(name: str) -> Callable[[LoadGroup], float]:
    def trigger(group: LoadGroup) -> float:
        at = time.monotonic()
        group.members[name].send_signal(signal.SIGKILL)
        return at

    return trigger


def _leave(name: str) -> Callable[[LoadGroup], float]:
    def trigger(group: LoadGroup) -> float:
        at = time.monotonic()
        group.members[name].close_input()
        return at

    return trigger


def _join(group: LoadGroup) -> float:
    group.start(JOINER)
    return group.joining_at(JOINER, _LIMIT_SECONDS)


CHANGES = (
    Change("kill -9 of a member", _kill(LAST), FOUNDER_NAMES[:-1]),
    Change("kill -9 of the coordinator", _kill(COORDINATOR), FOUNDER_NAMES[1:]),
    Change("a member leaves", _leave(LAST), FOUNDER_NAMES[:-1]),
    Change("the coordinator leaves", _leave(COORDINATOR), FOUNDER_NAMES[1:]),
    Change("a member joins", _join, (*FOUNDER_NAMES, JOINER)),
)


def measure(change: Change, runs: int) -> ViewChangeResults:
    """Measure a view change several times, in a calm group and in a busy one."""
    results = ViewChangeResults(change)
    for _ in range(runs):
        with _group(burst=0) as group:
            group.wait_view(FOUNDER_NAMES, _LIMIT_SECONDS)
            time.sleep(_CALM_SECONDS)
            results.seconds.append(_seconds(change, group)[1])
        seconds, rate = _measure_busy(change)
        results.seconds_loaded.append(seconds)
        results.rates.append(rate)
    return results


def _group(burst: int) -> LoadGroup:
    names = (*FOUNDER_NAMES, JOINER)
    group = LoadGroup(
        dict(zip(names, map(str, free_addresses(len(names))), strict=True)),
        run="view-change",
        membership=MembershipOptions(founders=FOUNDERS, heartbeat_ms=HEARTBEAT_MS, failure_ms=FAILURE_MS),
        rate_per_second=_CALM_RATE,
        burst=burst,
        payload_bytes=_PAYLOAD_BYTES,
        report_ms=_REPORT_MS,
    )
    group.start(*FOUNDER_NAMES)
    return group


def _seconds(change: Change, group: LoadGroup) -> tuple[float, float]:
    """When the event happened, and how long the view change took."""
    happened = change.trigger(group)
    return happened, group.wait_view(change.members, _LIMIT_SECONDS) - happened


def _measure_busy(change: Change) -> tuple[float, float]:
    """The time, and the rate after the event as a fraction of the rate before."""
    with _group(burst=_BURST) as group:
        group.wait_view(FOUNDER_NAMES, _LIMIT_SECONDS)
        time.sleep(_CALM_SECONDS + _STEADY_SECONDS)
        happened, took = _seconds(change, group)
        time.sleep(max(0.0, _STEADY_SECONDS - took) + 0.1)
        before, after = happened - _STEADY_SECONDS, happened + _STEADY_SECONDS
        survivors = [name for name in change.members if name != JOINER]
        steady = min(group.rate(name, before, happened) for name in survivors)
        return took, min(group.rate(name, happened, after) for name in survivors) / steady


def spread(values: list[float], form: str) -> str:
    """The median and the range."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({low:{form}}-{high:{form}})"
