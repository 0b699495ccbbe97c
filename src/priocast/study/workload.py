"""The workload of overload runs: four priorities, at a multiple of the saturating rate.

Every member broadcasts messages of four priorities at fixed rates, regardless of deliveries, and handles each
message that it consumes for a fixed time. A member can handle `1 / handling` messages per second: that rate
saturates the group, and `load` is a multiple of it.
"""

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT

MIX = {URGENT: 0.02, ELEVATED: 0.18, ROUTINE: 0.5, BACKGROUND: 0.3}

MESSAGES_MAX = 100_000_000
_LIMITS = {"load": 1_000, "seconds": 3_600, "handling_us": 10_000_000}


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The workload of one run."""

    members: int = 4
    load: float = 3.0
    seconds: float = 3.0
    handling_us: int = 250
    payload_bytes: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.members <= 64:
            raise InvalidOption(f"members is {self.members}: it must be from 1 to 64")
        for name, most in _LIMITS.items():
            value = getattr(self, name)
            if not 0 < value <= most:
                raise InvalidOption(f"{name} is {value}: it must be above 0, and at most {most:,}")
        if not 0 <= self.payload_bytes <= PAYLOAD_BYTES_MAX:
            raise InvalidOption(
                f"payload_bytes is {self.payload_bytes}: it must be from 0 to {PAYLOAD_BYTES_MAX:,}"
            )
        if self.total > MESSAGES_MAX:
            raise InvalidOption(
                f"there are {self.total:,} messages: choose a load and a time with at most {MESSAGES_MAX:,}"
            )
        if self.counts[URGENT] < 1:
            raise InvalidOption("the workload has no urgent message: choose a higher load or a longer time")

    @property
    def saturating_rate(self) -> float:
        """How many messages per second the group can handle."""
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
