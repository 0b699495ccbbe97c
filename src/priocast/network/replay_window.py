"""Which of a sender's numbers have been seen: a bitmap that slides along with the highest one."""

WINDOW_NUMBERS = 2048
_ALL = (1 << WINDOW_NUMBERS) - 1


class ReplayWindow:
    """Takes each number once. Those that are too far behind are taken for repetitions: it cannot tell.

    Nothing up to the number that it begins with is new.
    """

    def __init__(self, highest: int) -> None:
        self.highest = highest
        self.seen = _ALL  # bit i stands for highest - i

    def is_new(self, number: int) -> bool:
        """Whether a number may be taken; it counts as seen only when `note` is told, once it is authentic."""
        behind = self.highest - number
        return behind < 0 or (behind < WINDOW_NUMBERS and not self.seen >> behind & 1)

    def note(self, number: int) -> None:
        """The number has been seen."""
        ahead = number - self.highest
        if ahead <= 0:
            self.seen |= 1 << -ahead
        else:
            # Shifting by what a stranger chose could need any amount of memory.
            self.seen = (self.seen << ahead | 1) & _ALL if ahead < WINDOW_NUMBERS else 1
            self.highest = number
