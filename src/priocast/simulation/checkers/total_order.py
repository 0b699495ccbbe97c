"""Total order: a message has one position, a position has one message, and positions are delivered in order.

Positions are compared together with their view. Each incarnation delivers at ever higher positions. So two
incarnations that deliver two messages deliver them in the same order; and a message that is delivered in two
views has two positions, which is a violation.

There is one exception. In a primary group with agreed delivery, what an incarnation delivers in a view that
it drops out of binds nobody, unless it is safe: those who continue may never have received it.
"""

from priocast.core.guarantees import TOTAL_ORDER
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.process_history import RunHistory
from priocast.simulation.checkers.rows import (
    Key,
    ViewKey,
    keys_of,
    message_name,
    process_of,
    view_name,
    view_of,
)
from priocast.trace.schema import MessageRow

_Position = tuple[ViewKey, int]


class TotalOrder(Checker):
    """Remembers every position, and who delivered there first; `strict` if there is no exception."""

    GUARANTEE = TOTAL_ORDER

    def __init__(self, report: ReportViolation, history: RunHistory, strict: bool) -> None:
        super().__init__(report)
        self._history = history
        self._strict = strict
        self._position_of: dict[Key, tuple[_Position, str]] = {}
        self._message_at: dict[_Position, tuple[Key, str]] = {}
        self._reached: dict[str, int] = {}

    def on_delivered(self, row: MessageRow) -> None:
        process, view = process_of(row), view_of(row)
        reached = self._reached.get(process, -1)
        if row.position <= reached:
            key = keys_of(row)[0]
            self.violated(
                f"{process} delivers {message_name(key)} at position {row.position} after {reached}",
                row.time_ns,
                view=view,
                position=row.position,
                messages=[key],
                members=[process],
            )
        if self._strict or row.safe:
            for position, key in enumerate(keys_of(row), row.position):
                self._check(key, (view, position), process, row.time_ns)
        self._reached[process] = row.position + row.count - 1

    def finish(self, now: int) -> None:
        if self._strict:
            return
        for view, epochs in self._history.by_view().items():
            for epoch in epochs:
                if not epoch.dropped_out:
                    for key, delivered in epoch.delivered.items():
                        self._check(key, (view, delivered.position), epoch.process, now)

    def _check(self, key: Key, at: _Position, process: str, now: int) -> None:
        view, position = at
        first, by = self._position_of.setdefault(key, (at, process))
        if first != at:
            summary = (
                f"{process} delivers {message_name(key)} at position {position} of view {view_name(view)}, "
                f"{by} delivered it at {first[1]} of {view_name(first[0])}"
            )
            self.violated(summary, now, view=view, position=position, messages=[key], members=[process, by])
        other, by = self._message_at.setdefault(at, (key, process))
        if other != key:
            summary = f"{process} delivers {message_name(key)} where {by} delivered {message_name(other)}"
            messages = [key, other]
            self.violated(
                summary, now, view=view, position=position, messages=messages, members=[process, by]
            )
