"""The timer of a driver: wakes it at its member's deadline."""

import asyncio
from collections.abc import Callable

_SECOND = 1_000_000_000


class MemberTimer:
    """Calls `on_timer` at the member's deadline, or before: a timer that fires early does no harm.

    The shortest timeout of a link is that of an acknowledgement, `step_ns`. A timer that is never further
    away than that need not be set again for links.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, step_ns: int, on_timer: Callable[[], None]) -> None:
        self.is_set = False
        self._loop = loop
        self._step_ns = step_ns
        self._on_timer = on_timer
        self._at = 0
        self._handle: asyncio.Handle | None = None

    def set(self, deadline: int, now: int) -> None:
        """Fire at this time, unless it fires earlier anyway."""
        deadline = min(deadline, now + self._step_ns)
        if self.is_set and deadline >= self._at:
            return
        self.cancel()
        self._at = deadline
        self._handle = self._loop.call_later(max(0, deadline - now) / _SECOND, self._fire)
        self.is_set = True

    def cancel(self) -> None:
        """Do not fire."""
        if self._handle is not None:
            self._handle.cancel()
        self.is_set = False

    def _fire(self) -> None:
        self.is_set = False
        self._on_timer()
