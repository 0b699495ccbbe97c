"""Bounded memory: what a member keeps for others stays within a bound, and is gone when nobody needs it.

A member keeps the packets of its view that not everybody is known to hold. No more is ordered than the window
lets in before everybody has consumed it, and what was consumed was held; members say at least every mebibyte
how much they hold. So a window, a frame and some mebibytes are the bound. At rest nothing is kept at all.
"""

from collections.abc import Callable, Iterable

from priocast.member import Member
from priocast.simulation.checkers.checker import Checker, Report

_UNSAID_BYTES = 4 * 1024 * 1024


class Memory(Checker):
    """Looks at every member after each of its turns; `members` are those that are there in the end."""

    PROPERTY = "Bounded memory"

    def __init__(self, report: Report, window_bytes: int, members: Callable[[], Iterable[Member]]) -> None:
        super().__init__(report)
        self._bytes_max = window_bytes + _UNSAID_BYTES
        self._members = members

    def look_at(self, member: Member, now: int) -> None:
        """A member has had a turn."""
        epoch = member.epoch
        if epoch is not None and epoch.retention.bytes > self._bytes_max:
            text = f"{member.me} keeps {epoch.retention.bytes:,} bytes for others, {self._bytes_max:,} may be"
            self.violated(text, now, members=[str(member.me)])

    def finish(self, now: int) -> None:
        for member in self._members():
            epoch = member.epoch
            assert epoch is not None, "who is there in the end is in a view"
            if epoch.retention.bytes:
                text = f"{member.me} still keeps {epoch.retention.bytes:,} bytes that everybody holds"
                self.violated(text, now, members=[str(member.me)])
