"""Ordering window: what is ordered and not yet consumed by the slowest member stays within the window.

Priorities act only on what has no place yet, so a window that grows unseen switches them off without
breaking any other promise.
"""

from priocast.core.guarantees import BOUNDED_WINDOW
from priocast.simulation.checkers.checker import Checker, Report, keys_of
from priocast.trace.schema import NO_POSITION, Row


class Window(Checker):
    """Counts what the orderer has ordered and what each member has consumed."""

    PROPERTY = BOUNDED_WINDOW

    def __init__(self, report: Report, orderer: str, members: tuple[str, ...], window: int) -> None:
        super().__init__(report)
        self._orderer = orderer
        self._window = window
        self._consumed = dict.fromkeys(members, 0)

    def on_sent(self, row: Row) -> None:
        if row.member != self._orderer or row.position == NO_POSITION:
            return
        slowest = min(self._consumed, key=lambda member: self._consumed[member])
        under_way = row.position + row.count - self._consumed[slowest]
        if under_way > self._window:
            text = f"{under_way} messages are ordered and not consumed by {slowest}, {self._window} may be"
            self.violated(
                text, row.time_ns, position=row.position, messages=keys_of(row), members=[row.member, slowest]
            )

    def on_delivered(self, row: Row) -> None:
        self._consumed[row.member] += row.count
