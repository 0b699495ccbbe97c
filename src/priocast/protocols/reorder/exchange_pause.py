"""A pause between two exchanges, in which the application consumes what no exchange holds up.

While an urgent message is undecided, nothing less urgent may be consumed. So if a member began its next
exchange as soon as it may, less urgent messages would hardly ever be consumed under load. The pause is over
once nothing is left that could be consumed, and lasts at most as long as the exchange before it: then half of
the time belongs to the application, however slow it is.
"""


class ExchangePause:
    """When one member may begin its next exchange; `ends_at` is None while it has no pause yet."""

    __slots__ = ("_began_at", "_took_ns", "ends_at")

    def __init__(self) -> None:
        self._began_at: int | None = None
        self._took_ns = 0
        self.ends_at: int | None = 0

    def on_begin(self, now: int) -> None:
        """This member has begun an exchange."""
        self._began_at, self.ends_at = now, None

    def on_decided(self, awaits_others: bool, now: int) -> None:
        """Its own exchange has ended; the pause begins when those of others that it waits for have, too."""
        if self._began_at is not None:
            self._took_ns, self._began_at = now - self._began_at, None
        if self.ends_at is None and not awaits_others:
            self.ends_at = now + self._took_ns
