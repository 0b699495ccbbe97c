"""The load of the adaptive paper's experiments, and a load that changes: when each of six senders broadcasts.

Two senders broadcast 10 messages per second, one 20, and three are slow, down to one message in three seconds
(section 6.2). The paper's rates are constant; in the changing load senders change their rates, pause and
resume, and in the simulator one joins.
"""

import msgspec

from priocast.core.errors import InvalidOption
from priocast.simulation.load_phases import LoadPhase, broadcast_times_us, phases_of, rate_at
from priocast.simulation.seeded_random import SeededRandom

FAST_RATES = (10.0, 10.0, 20.0)
SLOW_COUNT = 3
SENDERS = len(FAST_RATES) + SLOW_COUNT
PAYLOAD_BYTES = 50
SECONDS_MIN, SECONDS_MAX = 4.0, 600.0
SLOW_SECONDS_MAX = 60.0
_SECOND_US = 1_000_000
_SEED = 1998


class AdaptiveLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent in one run: for how many seconds, and how long a slow sender pauses between messages.

    The second half counts as settled, up to a margin at the end: what is sent last may wait for a message
    that never comes. The rates change in the quarters of a load with `changes`; if one `joins`, it does so
    after five eighths.
    """

    seconds: float = 40.0
    slow_seconds: float = 3.0
    changes: bool = False
    joins: bool = False

    def __post_init__(self) -> None:
        if not SECONDS_MIN <= self.seconds <= SECONDS_MAX:
            raise InvalidOption(
                f"seconds is {self.seconds:g}: it must be between {SECONDS_MIN:g} and {SECONDS_MAX:g}"
            )
        if not 0 < self.slow_seconds <= SLOW_SECONDS_MAX:
            raise InvalidOption(
                f"slow_seconds is {self.slow_seconds:g}: it must be above 0 and at most {SLOW_SECONDS_MAX:g}"
            )

    @property
    def until_us(self) -> int:
        """When the load ends."""
        return int(self.seconds * _SECOND_US)

    @property
    def senders(self) -> int:
        """How many members send at some time."""
        return SENDERS + self.joins

    @property
    def joins_at_us(self) -> int:
        """When the last sender joins, if it does."""
        return self.until_us * 5 // 8

    @property
    def settled(self) -> str:
        """The part of the load that counts as settled, as a label: its begin and its end in seconds."""
        margin = min(2 * self.slow_seconds, self.seconds / 4)
        return f"{self.seconds / 2:g}:{self.seconds - margin:g}"

    def phases(self, from_us: int = 0) -> tuple[LoadPhase, ...]:
        """The rates of all senders over time."""
        slow = 1 / self.slow_seconds
        constant = phases_of((*FAST_RATES, slow, slow, slow), from_us)
        if self.joins:
            constant = (*constant, LoadPhase(SENDERS, from_us + self.joins_at_us, 10))
        if not self.changes:
            return constant

        def at(part: float) -> int:
            return from_us + int(part * self.until_us)

        return (
            *constant,
            LoadPhase(0, at(1 / 4), slow),
            LoadPhase(3, at(1 / 4), 10),
            LoadPhase(2, at(1 / 2), 0),
            LoadPhase(2, at(3 / 4), 20),
        )

    def times_us(self, sender: int) -> list[int]:
        """When a sender broadcasts, after the start."""
        return broadcast_times_us(
            self.phases(), sender, self.until_us, SeededRandom(f"load {_SEED} {sender}")
        )

    @property
    def total(self) -> int:
        """How many messages all senders broadcast together."""
        return sum(len(self.times_us(sender)) for sender in range(self.senders))

    def true_shares(self, second: float) -> tuple[float, ...]:
        """Each sender's share of what all send at a time."""
        rates = [rate_at(self.phases(), sender, int(second * _SECOND_US)) for sender in range(self.senders)]
        return tuple(rate / (sum(rates) or 1.0) for rate in rates)
