"""Ordering window: what a view's orderer has ordered and its slowest member has not consumed is bounded.

Priorities act only on what has no place yet, so a window that grows unseen switches them off without
breaking any other promise.
"""

from priocast.core.guarantees import BOUNDED_WINDOW
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.simulation.checkers.checker import Checker, Report, ViewKey, keys_of, process_of, view_of
from priocast.trace.schema import NO_POSITION, Row


class Window(Checker):
    """Counts what each orderer has ordered and what each member has consumed of it."""

    PROPERTY = BOUNDED_WINDOW

    def __init__(self, report: Report, window: int) -> None:
        super().__init__(report)
        self._window = window
        self._orderers: dict[ViewKey, str] = {}
        self._consumed: dict[ViewKey, dict[str, int]] = {}
        self._ordered: dict[ViewKey, int] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        key = (view.number, str(view.coordinator))
        self._orderers[key] = str(find_protocol(ordering.order).orderer(view) or "")
        self._consumed.setdefault(key, {str(member): 0 for member in view.members})

    def on_sent(self, row: Row) -> None:
        view, process = view_of(row), process_of(row)
        if self._orderers.get(view) != process or row.position == NO_POSITION:
            return
        consumed = self._consumed[view]
        self._ordered[view] = self._ordered.get(view, 0) + row.count
        slowest = min(consumed, key=lambda member: consumed[member])
        under_way = self._ordered[view] - consumed[slowest]
        if under_way > self._window:
            text = f"{under_way} messages are ordered and not consumed by {slowest}, {self._window} may be"
            self.violated(
                text, row.time_ns, position=row.position, messages=keys_of(row), members=[process, slowest]
            )

    def on_delivered(self, row: Row) -> None:
        consumed = self._consumed.get(view_of(row))
        if consumed is not None and process_of(row) in consumed:
            consumed[process_of(row)] += row.count
