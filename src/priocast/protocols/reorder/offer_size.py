"""How many messages of the queue are offered to the application at once.

What the application takes of an offer has its position, and can no longer be overtaken; and what is left of
an overtaken offer is put together again. So an offer should be small. But each one costs a step, however
small it is: with 64 messages an offer, a message at full load cost 0.98 us of processor time in all four
members, with what the application takes in a millisecond 0.26 us (`python -m benchmarks.batch_cost reorder`).
"""

OFFERED_MIN = 64
OFFERED_MAX = 4096
_OFFER_NS = 1_000_000


class OfferSize:
    """What one application is likely to take within a millisecond; `count` is the most that it is offered."""

    __slots__ = ("_taken_at", "count")

    def __init__(self) -> None:
        self.count = OFFERED_MIN
        self._taken_at = 0

    def taken(self, count: int, now: int) -> None:
        """The application took messages. If it had a pause before, only that shows that it needs fewer."""
        if now - self._taken_at > _OFFER_NS:
            self.count = max(self.count // 2, OFFERED_MIN)
        elif count == self.count:
            self.count = min(2 * count, OFFERED_MAX)
        self._taken_at = now
