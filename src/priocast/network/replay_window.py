"""A replay window: which of a sender's counters were received, as a bitmap below the highest one."""

WINDOW_NUMBERS = 2048
_ALL = (1 << WINDOW_NUMBERS) - 1


class ReplayWindow:
    """Accepts each number once. Numbers too far below the highest count as replayed, because it cannot tell.

    Numbers up to the initial `highest` are not new.
    """

    def __init__(self, highest: int) -> None:
        self.highest = highest
        self.seen = _ALL  # bit i represents highest - i

    def is_new(self, number: int) -> bool:
        """Whether a number was not received before. Call `note` once its datagram is authenticated."""
        behind = self.highest - number
        return behind < 0 or (behind < WINDOW_NUMBERS and not self.seen >> behind & 1)

    def note(self, number: int) -> None:
        """Mark a number as received."""
        ahead = number - self.highest
        if ahead <= 0:
            self.seen |= 1 << -ahead
        else:
            # A shift by a number that a stranger chose could need any amount of memory.
            self.seen = (self.seen << ahead | 1) & _ALL if ahead < WINDOW_NUMBERS else 1
            self.highest = number
