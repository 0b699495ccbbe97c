"""How long messages were held up although they could have been consumed otherwise."""

import msgspec


class Stalls(msgspec.Struct, frozen=True, gc=False):
    """How often something was held up, and how long: in all, and the longest time (ns)."""

    count: int = 0
    total_ns: int = 0
    longest_ns: int = 0

    def followed_by(self, later: "Stalls") -> "Stalls":
        """These and later ones."""
        return Stalls(
            self.count + later.count,
            self.total_ns + later.total_ns,
            max(self.longest_ns, later.longest_ns),
        )


class StallMeter:
    """Counts the times at which something was held up, and how long: in all, and the longest time (ns)."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self._since: int | None = None

    def note(self, stalled: bool, now: int) -> None:
        """Whether something is held up from here on."""
        if stalled and self._since is None:
            self._since = now
            self.count += 1
        elif not stalled and self._since is not None:
            self.total_ns += now - self._since
            self.longest_ns = max(self.longest_ns, now - self._since)
            self._since = None

    def lasting(self, now: int) -> int:
        """How long something has been held up by now (ns); 0 if nothing is."""
        return 0 if self._since is None else now - self._since

    def until(self, now: int) -> Stalls:
        """All so far, with the one that lasts."""
        lasting = self.lasting(now)
        return Stalls(self.count, self.total_ns + lasting, max(self.longest_ns, lasting))
