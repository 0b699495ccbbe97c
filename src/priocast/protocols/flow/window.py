"""The size of the window that a member grants: how many messages may be ordered and not yet consumed here.

A message with a position can no longer be overtaken, so the window should be small. But while a grant travels
to the orderer and the messages travel back, the application lives on what is queued, so the window must not
be too small. A member therefore measures two things: how many messages its application consumes in a given
time, and for how long it must be supplied. The latter grows when the application runs dry while the orderer
waits for this member, and shrinks slowly when it does not: it settles near the time that a grant takes,
whatever the network, the machine and the application. With *safe* delivery the application is dry while what
is ordered is not stable, so the time settles near that of a grant and the acknowledgements.
"""

from priocast.core.protocol import WINDOW_MAX

WINDOW_FIRST = 16
WINDOW_MIN = 2
_FADING = 16
_MILLISECOND = 1_000_000
_TIME_FIRST_NS = 4 * _MILLISECOND
_TIME_MIN_NS = 1 * _MILLISECOND
_GROWTH_DIVISOR = 4
_SHRINKAGE_DIVISOR = 64


class ConsumptionWindow:
    """What one member grants: a fixed number, or what its application consumes while a grant travels.

    The time per message can be measured only between two takes while messages are waiting: it is the ratio
    of the summed times to the summed counts, both fading by a sixteenth per take. An idle application gives
    no measurement; one that takes half of the granted messages at once may get twice as many.
    `is_bottleneck` says that the orderer waits for this member.
    """

    def __init__(self, fixed: int | None, time_ns_max: int) -> None:
        self._fixed = fixed
        self._time_ns_max = time_ns_max
        self._time_ns = min(_TIME_FIRST_NS, time_ns_max)
        self._busy_ns = self._time_ns
        self._busy_count = WINDOW_FIRST
        self._waiting = 0
        self._taken_at: int | None = None
        self.is_bottleneck = False
        self._ran_dry = False

    @property
    def size(self) -> int:
        """How many messages may be ordered and not yet consumed here."""
        if self._fixed is not None:
            return self._fixed
        return max(WINDOW_MIN, min(self._time_ns * self._busy_count // self._busy_ns, WINDOW_MAX))

    def queued(self, count: int, is_bottleneck: bool) -> None:
        """Messages wait for the application; `is_bottleneck` says that more of them wait for a grant."""
        self._waiting += count
        self.is_bottleneck = is_bottleneck

    def consumed(self, count: int, now: int) -> None:
        """The application consumed messages that waited."""
        assert 0 < count <= self._waiting
        if self._taken_at is not None:
            self._busy_ns += now - self._taken_at - self._busy_ns // _FADING
            self._busy_count += count - self._busy_count // _FADING
        elif 2 * count >= self.size:
            self._busy_ns //= 2
        self._busy_ns = max(1, self._busy_ns)
        self._waiting -= count
        self._taken_at = now if self._waiting else None
        self._ran_dry |= self.is_bottleneck and not self._waiting

    def application_waits(self) -> None:
        """The application has nothing to do, although messages wait: they are not deliverable yet.

        The time until they are is not the application's. It has to be covered like that of a grant.
        """
        self._taken_at = None
        self._ran_dry |= self.is_bottleneck

    def grant(self) -> int:
        """The size to report now."""
        if self._ran_dry:
            self._time_ns = min(self._time_ns + self._time_ns // _GROWTH_DIVISOR, self._time_ns_max)
        elif self.is_bottleneck:
            floor_ns = min(_TIME_MIN_NS, self._time_ns_max)
            self._time_ns = max(self._time_ns - self._time_ns // _SHRINKAGE_DIVISOR, floor_ns)
        self._ran_dry = False
        return self.size
