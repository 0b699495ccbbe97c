"""Declared patterns (the adaptive paper, section 7): the application says who sends how much, and when.

The argument is a period and its phases: when each begins, and the rates of members by name, in any unit. For
a group whose member `a` is busy from 8 to 18 hours, and `b` at night:

    schedule:24h;8h a=20 b=1;18h a=1 b=20

A member that a phase does not name gets the smallest share. Time is the driver's: in a simulation it is
virtual, in a running group it is the monotonic clock of the coordinator's machine, which need not begin at
midnight.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId, is_name
from priocast.core.view import View
from priocast.protocols.adaptive.policies.policy import AdaptationPolicy, differing

_NANOSECONDS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9}
_DURATION = re.compile(r"(\d{1,9})(ms|s|min|h)")
_RATE = re.compile(r"([^=]+)=(\d{1,9})")

Phase = tuple[int, tuple[tuple[str, int], ...]]


class Schedule(AdaptationPolicy):
    """The coordinator proposes the weights of the phase that its time is in."""

    NAME = "schedule"

    def __init__(self, me: ProcessId, view: View, argument: str) -> None:
        super().__init__(me, view, argument)
        self._period_ns, self._phases = _parsed(argument)

    @classmethod
    def check(cls, argument: str) -> None:
        _parsed(argument)

    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        if self.rank:
            return None
        return differing(self._rates(now % self._period_ns), weights)

    def _rates(self, time_ns: int) -> list[int]:
        """The rates of the last phase that has begun; before the first one, the last of the period before."""
        begun = [rates for begins_at, rates in self._phases if begins_at <= time_ns]
        rates = dict(begun[-1] if begun else self._phases[-1][1])
        return [rates.get(member.name, 0) for member in self.view.members]


@lru_cache(16)
def _parsed(argument: str) -> tuple[int, tuple[Phase, ...]]:
    """The period, and its phases in the order of their beginnings."""
    period, *phases = argument.split(";")
    period_ns = _duration_ns(argument, period)
    found = tuple(sorted(_phase(argument, phase) for phase in phases))
    if not found or not period_ns or found[-1][0] >= period_ns:
        raise _invalid(argument, "there must be a phase, and all must begin within the period")
    return period_ns, found


def _phase(argument: str, text: str) -> Phase:
    begins_at, *rates = text.split(" ")
    matches = [_RATE.fullmatch(rate) for rate in rates]
    pairs = tuple((match[1], int(match[2])) for match in matches if match and is_name(match[1]))
    if not pairs or len(pairs) != len(rates):
        raise _invalid(argument, f"{text!r} must be a time and rates, such as '8h a=20 b=1'")
    return _duration_ns(argument, begins_at), pairs


def _duration_ns(argument: str, text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise _invalid(argument, f"{text!r} must be a time, such as 8h, 30min, 10s or 500ms")
    return int(match[1]) * _NANOSECONDS[match[2]]


def _invalid(argument: str, problem: str) -> InvalidOption:
    return InvalidOption(f"adaptation is 'schedule:{argument}': {problem}")
