"""The overloaded, mixed-priority work that shows what priorities are for.

Every member broadcasts messages of four classes at fixed rates, whatever becomes of them, and handles each
message that it consumes for a fixed time. One member can handle `1 / handling` messages a second: that is
what saturates the group, and `load` is a multiple of it.
"""

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT

MIX = {URGENT: 0.02, ELEVATED: 0.18, ROUTINE: 0.5, BACKGROUND: 0.3}


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What the members of one run do."""

    members: int = 4
    load: float = 3.0
    seconds: float = 3.0
    handling_us: int = 250
    payload_bytes: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.members <= 64:
            raise InvalidOption(f"members is {self.members}: a demo has 1 to 64")
        if self.load <= 0 or self.seconds <= 0 or self.handling_us < 1 or self.payload_bytes < 0:
            raise InvalidOption("load, seconds and handling must be above 0")
        if self.counts[URGENT] < 1:
            raise InvalidOption("so little load in so short a time has no urgent message at all")

    @property
    def saturating_rate(self) -> float:
        """How many messages a second the group can take."""
        return 1_000_000 / self.handling_us

    @property
    def counts(self) -> dict[int, int]:
        """How many messages each member broadcasts, by priority."""
        each = self.load * self.saturating_rate * self.seconds / self.members
        return {priority: round(each * share) for priority, share in MIX.items()}

    @property
    def total(self) -> int:
        """How many messages every member delivers."""
        return self.members * sum(self.counts.values())
