"""The only source of randomness of a simulated run: the same seed gives the same numbers on every machine.

`random.Random` returns the same uniform numbers everywhere. Logarithms and powers may differ in the last bit
from one C library to the next, and one bit is enough to turn a seed into a different run. The distributions
here use neither.
"""

from random import Random


class SeededRandom(Random):
    """A generator with the distributions that scenarios use."""

    def chance(self, percent: int) -> bool:
        """True with a probability of `percent` in a hundred."""
        return self.randrange(100) < percent

    def log_uniform(self, low: int, high: int) -> int:
        """An integer from low to high; each doubling is as likely as the next."""
        assert 0 < low <= high
        start = low << self.randrange((high // low).bit_length())
        return min(self.randint(start, 2 * start - 1), high)

    def exponential(self, mean: int) -> int:
        """An exponentially distributed duration, by comparisons only (von Neumann 1951).

        A run of falling numbers that starts at x has odd length with probability exp(-x); every run of even
        length adds one mean to the result.
        """
        wholes = 0
        while True:
            first = last = self.random()
            odd = True
            while (number := self.random()) < last:
                last = number
                odd = not odd
            if odd:
                return int(mean * (wholes + first))
            wholes += 1
