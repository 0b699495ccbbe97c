"""An adaptation policy for tests: every member proposes other weights all the time, and several at once.

It is the worst policy there can be. What the mechanism guarantees must hold nevertheless.
"""

from collections.abc import Sequence

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols.adaptive.policies import register_policy
from priocast.protocols.adaptive.policies.policy import AdaptationPolicy


@register_policy
class RestlessPolicy(AdaptationPolicy):
    """Proposes after every `argument` packets; the weights differ from member to member and every time."""

    NAME = "restless"

    def __init__(self, me: ProcessId, view: View, argument: str) -> None:
        super().__init__(me, view, argument)
        self._every = int(argument)
        self._packets = 0
        self._proposals = 0

    @classmethod
    def check(cls, argument: str) -> None:
        if not argument.isdecimal():
            raise InvalidOption(f"adaptation is '{cls.NAME}:{argument}': how many packets?")

    def on_messages(self, rank: int, count: int, urgency: int, now: int) -> None:
        self._packets += 1

    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        if self._packets < self._every:
            return None
        self._packets = 0
        self._proposals += 1
        start = self._proposals + self.rank
        return tuple(1 + (start * (rank + 2)) % 5 for rank in range(self.size))
