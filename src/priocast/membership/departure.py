"""Departure: why a member is no longer in the group."""

import msgspec

from priocast.core.view_reason import ViewReason


class Departed(msgspec.Struct, frozen=True):
    """A member is no longer in the group: whether it wanted to leave, and the reason of the next view."""

    voluntary: bool
    reason: ViewReason

    def __str__(self) -> str:
        return str(self.reason) if self.voluntary else f"evicted: {self.reason}"
