"""FIFO among equals: each member delivers a sender's messages of one level in the order of their numbers.

In a plain group everything is on one level, so there this holds without exception.
"""

from priocast.core.guarantees import FIFO_AMONG_EQUALS
from priocast.simulation.checkers.checker import Checker, Report, keys_of, name_of
from priocast.trace.schema import Row


class Fifo(Checker):
    """Counts what each member has delivered of each sender and level."""

    PROPERTY = FIFO_AMONG_EQUALS

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._next: dict[tuple[str, str, int, int], int] = {}

    def on_delivered(self, row: Row) -> None:
        stream = (row.member, row.sender, row.sender_incarnation, row.level)
        expected = self._next.get(stream, 0)
        if row.first != expected:
            key = keys_of(row)[0]
            text = f"{row.member} delivers {name_of(key)} where number {expected} of its level is next"
            self.violated(
                text, row.time_ns, position=row.position, messages=[key], members=[row.member, row.sender]
            )
        self._next[stream] = row.first + row.count
