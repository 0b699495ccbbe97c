"""Dice that fall alike on every machine.

`random.Random` draws the same uniform numbers everywhere, but logarithms and powers may differ in the last
bit from one C library to the next, and one bit is enough to make a seed tell another story. What is here
needs neither.
"""

from random import Random


def chance(dice: Random, percent: int) -> bool:
    """Whether something happens that happens so often."""
    return dice.randrange(100) < percent


def log_uniform(dice: Random, low: int, high: int) -> int:
    """An integer from low to high, each doubling as likely as the next."""
    assert 0 < low <= high
    start = low << dice.randrange((high // low).bit_length())
    return min(dice.randint(start, 2 * start - 1), high)


def exponential(dice: Random, mean: int) -> int:
    """A duration with a long tail, by comparisons only (von Neumann 1951).

    A run of falling numbers that starts at x has odd length with probability exp(-x); every run of even
    length adds one mean to the result.
    """
    wholes = 0
    while True:
        first = last = dice.random()
        odd = True
        while (number := dice.random()) < last:
            last = number
            odd = not odd
        if odd:
            return int(mean * (wholes + first))
        wholes += 1
