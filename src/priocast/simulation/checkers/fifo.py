"""FIFO among equals: a sender's messages of one level are delivered in the order of their numbers.

In a plain group all messages have one level, so this holds for all of them. Within a view, and in a primary
group from one view to the next, no number is skipped except those of messages that are addressed to others,
or that repeat a client's request.
"""

from priocast.core.guarantees import FIFO_AMONG_EQUALS
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.rows import (
    Key,
    ViewKey,
    is_addressed_to,
    keys_of,
    message_name,
    process_of,
    view_of,
)
from priocast.trace.schema import MessageRow


class FifoAmongEquals(Checker):
    """Counts what each incarnation has delivered of each sender and level."""

    GUARANTEE = FIFO_AMONG_EQUALS

    def __init__(self, report: ReportViolation, primary: bool) -> None:
        super().__init__(report)
        self._primary = primary
        self._next: dict[tuple[str, str, int, int], tuple[int, ViewKey]] = {}
        self._recipients: dict[Key, str] = {}
        self._requests: set[Key] = set()

    def on_broadcast(self, row: MessageRow) -> None:
        if row.to:
            self._recipients.update(dict.fromkeys(keys_of(row), row.to))
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
            self.violated(
                f"{process} delivers {message_name(key)} where number {expected} of its level is next",
                row.time_ns,
                view=view_of(row),
                position=row.position,
                messages=[key],
                members=[process, row.sender],
            )

    def _skipped(self, row: MessageRow, expected: int) -> Key | None:
        """The first message that should have been delivered before."""
        for number in range(expected, row.first):
            key = (row.sender, row.sender_incarnation, row.level, number)
            if is_addressed_to(self._recipients.get(key, ""), row.member) and key not in self._requests:
                return key
        return None
