"""Stalls: how long the application waited although messages were queued."""

import msgspec


class Stalls(msgspec.Struct, frozen=True, gc=False):
    """How often the application stalled, and for how long: in total, and at most (ns)."""

    count: int = 0
    total_ns: int = 0
    longest_ns: int = 0

    def followed_by(self, later: "Stalls") -> "Stalls":
        """These stalls and later ones."""
        return Stalls(
            self.count + later.count,
            self.total_ns + later.total_ns,
            max(self.longest_ns, later.longest_ns),
        )


class StallMeter:
    """Counts stalls and measures how long they last: in total, and at most (ns)."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self._since: int | None = None

    def note(self, stalled: bool, now: int) -> None:
        """Note whether the application is stalled from now on."""
        if stalled and self._since is None:
            self._since = now
            self.count += 1
        elif not stalled and self._since is not None:
            self.total_ns += now - self._since
            self.longest_ns = max(self.longest_ns, now - self._since)
            self._since = None

    def lasting(self, now: int) -> int:
        """How long the current stall has lasted (ns); 0 if there is none."""
        return 0 if self._since is None else now - self._since

    def until(self, now: int) -> Stalls:
        """All stalls so far, including the current one."""
        lasting = self.lasting(now)
        return Stalls(self.count, self.total_ns + lasting, max(self.longest_ns, lasting))
