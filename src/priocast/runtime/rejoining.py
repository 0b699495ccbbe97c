"""When an evicted member rejoins: not before its application is back, and not too often.

The next incarnation joins when the application has taken the `Evicted` event and asks for the next one: an
application that is stuck would be a burden to the group again. The first time it joins at once. If it is
evicted again soon, a pause comes first. The pause doubles each time up to a limit if the member is to blame,
for instance as slow; a member that was only not heard, because of its network, pauses for `failure_ms`. A
member that was not evicted for as long as the limit starts anew.
"""

import asyncio
import time
from collections.abc import Callable

from priocast.core.view_reason import ViewReason
from priocast.membership.options import MembershipOptions
from priocast.runtime.waits import log_if_long

_PAUSE_MAX_FACTOR = 6
_SECOND = 1_000_000_000


class RejoinPauses:
    """How long a member waits before it rejoins, in nanoseconds."""

    def __init__(self, options: MembershipOptions) -> None:
        self.pause_ns = 0
        self._grown_ns = 0
        self._pause_first_ns = options.failure_ns
        self._pause_max_ns = _PAUSE_MAX_FACTOR * options.slow_ns
        self._rejoined_at: int | None = None

    def on_evicted(self, now: int, *, is_to_blame: bool) -> None:
        """The member was evicted; if it is not to blame, the others have not heard it."""
        if self._rejoined_at is None or now - self._rejoined_at >= self._pause_max_ns:
            self.pause_ns = self._grown_ns = 0
        elif is_to_blame:
            self._grown_ns = min(max(2 * self._grown_ns, self._pause_first_ns), self._pause_max_ns)
            self.pause_ns = self._grown_ns
        else:
            self.pause_ns = self._pause_first_ns

    def on_rejoin(self, now: int) -> None:
        """The next incarnation begins to join."""
        self._rejoined_at = now


class Rejoining:
    """Lets the next incarnation of one member join, by calling `rejoin`.

    `on_probation`: the last incarnation was evicted as slow, so the next one is on probation.
    `awaits_application`: the application has not come back since the eviction.
    """

    def __init__(self, name: str, options: MembershipOptions, rejoin: Callable[[], None]) -> None:
        self.on_probation = False
        self.awaits_application = False
        self._name = name
        self._pauses = RejoinPauses(options)
        self._rejoin = rejoin
        self._timer: asyncio.Handle | None = None

    def on_evicted(self, reason: ViewReason) -> None:
        """The member was evicted, for the reason of the view that excludes it."""
        causes = [eviction.cause for eviction in reason.evicted if eviction.member == self._name]
        self.on_probation = "slow" in causes
        self.awaits_application = True
        self._pauses.on_evicted(time.monotonic_ns(), is_to_blame=bool(causes))
        self._timer = log_if_long(
            f"{self._name} was evicted and waits",
            lambda: "it rejoins when its application asks for the next event",
            member=self._name,
        )

    def on_application_back(self) -> None:
        """The application has taken the `Evicted` event and asks for the next one."""
        self.cancel()
        self.awaits_application = False
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._pauses.pause_ns / _SECOND, self._on_pause_over)

    def _on_pause_over(self) -> None:
        self._pauses.on_rejoin(time.monotonic_ns())
        self._rejoin()

    def cancel(self) -> None:
        """Do nothing more."""
        if self._timer is not None:
            self._timer.cancel()
