"""Exponential decay (the adaptive paper, section 7): members that pause lose their slots quickly.

A sliding window remembers a member that has paused until enough packets of others have pushed its own out,
and then has to learn it anew when it resumes. Here the count of each member is halved every halving time: a
pause of a few of them costs a member its slots, and what it did before a pause does not matter any more.
"""

from collections.abc import Sequence

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols.adaptive.policies.policy import AdaptationPolicy, differing

HALVING_MS = 500
HALVING_MS_MAX = 3_600_000
_MILLISECOND = 1_000_000
_UNIT = 1 << 16
_STEPS = 4
#: What is left after a step of a quarter of a halving time: the fourth root of 1/2, in units.
_LEFT_AFTER_STEP = 55_109
_STEPS_MAX = 4 * 32


class Decay(AdaptationPolicy):
    """The coordinator counts; the argument is the halving time in milliseconds."""

    NAME = "decay"

    def __init__(self, me: ProcessId, view: View, argument: str) -> None:
        super().__init__(me, view, argument)
        self._step_ns = (int(argument) if argument else HALVING_MS) * _MILLISECOND // _STEPS
        self._counts = [0] * self.size
        self._decayed_at: int | None = None
        self._compare = False

    @classmethod
    def check(cls, argument: str) -> None:
        if argument and not (argument.isdecimal() and 1 <= int(argument) <= HALVING_MS_MAX):
            raise InvalidOption(
                f"adaptation is '{cls.NAME}:{argument}': the halving time must be between 1 and "
                f"{HALVING_MS_MAX} milliseconds"
            )

    def on_messages(self, rank: int, count: int, urgency: int, now: int) -> None:
        if self.rank:
            return
        self._decay(now)
        self._counts[rank] += _UNIT

    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        """Compare once per step, so that the rate of messages does not decide how often."""
        if self.rank or not self._compare:
            return None
        self._compare = False
        return differing(self._counts, weights)

    def _decay(self, now: int) -> None:
        if self._decayed_at is None:
            self._decayed_at = now
        steps = (now - self._decayed_at) // self._step_ns
        if not steps:
            return
        self._decayed_at += steps * self._step_ns
        self._compare = True
        for _ in range(min(steps, _STEPS_MAX)):
            self._counts = [count * _LEFT_AFTER_STEP // _UNIT for count in self._counts]
