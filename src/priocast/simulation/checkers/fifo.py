"""FIFO among equals: each life delivers a sender's messages of one level in the order of their numbers.

In a plain group everything is on one level, so there this holds without exception. Within a view, and in a
primary group from one view to the next, no number is left out but of messages that are for others, or that
repeat a client's request.
"""

from priocast.core.guarantees import FIFO_AMONG_EQUALS
from priocast.simulation.checkers.checker import (
    Checker,
    Key,
    Report,
    ViewKey,
    keys_of,
    name_of,
    process_of,
    view_of,
)
from priocast.trace.schema import MessageRow


class Fifo(Checker):
    """Counts what each life has delivered of each sender and level."""

    PROPERTY = FIFO_AMONG_EQUALS

    def __init__(self, report: Report, primary: bool) -> None:
        super().__init__(report)
        self._primary = primary
        self._next: dict[tuple[str, str, int, int], tuple[int, ViewKey]] = {}
        self._not_for_all: dict[Key, str] = {}
        self._requests: set[Key] = set()

    def on_broadcast(self, row: MessageRow) -> None:
        if row.to:
            self._not_for_all.update(dict.fromkeys(keys_of(row), row.to))
        if row.client:
            self._requests.update(keys_of(row))

    def on_delivered(self, row: MessageRow) -> None:
        process = process_of(row)
        stream = (process, row.sender, row.sender_incarnation, row.level)
        expected, view = self._next.get(stream, (None, view_of(row)))
        self._next[stream] = (row.first + row.count, view_of(row))
        if expected is None:
            return
        if row.first < expected or (
            (self._primary or view == view_of(row)) and self._skipped(row, expected) is not None
        ):
            key = keys_of(row)[0]
            text = f"{process} delivers {name_of(key)} where number {expected} of its level is next"
            self.violated(
                text, row.time_ns, position=row.position, messages=[key], members=[process, row.sender]
            )

    def _skipped(self, row: MessageRow, expected: int) -> Key | None:
        """The first message that should have come before."""
        for number in range(expected, row.first):
            key = (row.sender, row.sender_incarnation, row.level, number)
            to = self._not_for_all.get(key, row.member)
            if row.member in to.split(",") and key not in self._requests:
                return key
        return None
