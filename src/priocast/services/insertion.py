"""Insertion points: where a message is inserted into the queues of its recipients, alike at all of them.

A point is a tuple of numbers, and points are ordered like tuples. None ends with 0, so that there is one
between any two: (4,) < (4, 0, 1) < (4, 1) < (4, 2) < (5,).
"""

from collections.abc import Iterable

Point = tuple[int, ...]

BEGINNING: Point = (1,)
_LENGTH_MAX = 60


def point_between(lowest: Point, before: Point) -> Point:
    """A point after `lowest` and, if one is given, before `before`.

    Points grow longer where many are inserted at the same place. Before one becomes too long to be sent, the
    message is inserted later than it could be: its urgency suffers, the order does not.
    """
    after_all = (lowest[0] + 1,)
    if not before:
        return after_all
    assert lowest < before
    candidates = (
        (*lowest[:-1], lowest[-1] + 1),
        (*lowest, 1),
        (*before[:-1], before[-1] - 1, 1),
    )
    found = next(point for point in candidates if lowest < point < before)
    return found if len(found) <= _LENGTH_MAX else after_all


def common_point(proposals: Iterable[tuple[Point, Point]]) -> Point:
    """The point that all recipients can accept, given the earliest one of each and that of its next message.

    It follows from the proposals alone: whoever decides on the same proposals decides on the same point. On a
    network with network order there are no points, and the result is empty.
    """
    pairs = [pair for pair in proposals if pair[0]]
    if not pairs:
        return ()
    lowest = max(pair[0] for pair in pairs)
    return point_between(lowest, min((pair[1] for pair in pairs if pair[1] > lowest), default=()))


def point_of_unit(point: Point, index: int, count: int) -> Point:
    """The point of one of the units of a message; between them there is room for other messages."""
    return point if count == 1 else (*point, index + 1)


def is_point(point: Point) -> bool:
    """Whether these numbers are a point."""
    return bool(point) and point[-1] > 0
