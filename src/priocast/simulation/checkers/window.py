"""Bounded window: messages that are ordered, or sent to be ordered, and not yet consumed are bounded.

Priorities act only on messages that are not ordered yet. So a window that grows unnoticed switches them off
without breaking any other guarantee.

Where packets assign positions, all ordered messages count, and the bound is the window. Where every member
sends by itself (`PacedProtocol`), the messages that it has sent count, and the bound is its share of the
window. Three things are checked:

- Members grant what is true: no more is reported as consumed than their applications have delivered, and a
  fixed window is granted as it is.
- Nothing is ordered beyond what every member has granted: the number of messages that it reported as
  consumed plus the window that it granted with the report. An adaptive window is whatever the member
  granted.
- With a fixed window no more messages are ordered and not delivered than the window, at the slowest member.

Deliveries are counted only in runs in which every member delivers every message: `counts_deliveries` is
false where messages are addressed to some members, repeat a client's request, or are taken over with a
state. Layers are not checked: they pass messages on from the order below before the application consumes
them.
"""

from priocast.core.guarantees import BOUNDED_WINDOW
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.consumption import share
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.window import WINDOW_FIRST
from priocast.simulation.checkers.checker import Checker, ReportViolation, view_key
from priocast.simulation.checkers.rows import Key, ViewKey, keys_of, process_of, sender_of, view_of
from priocast.trace.schema import NO_POSITION, MessageRow

_ALL_SENDERS = ""


class _WindowUse:
    """What one sender, or all of them, ordered in a view; what each member consumed of it and granted.

    `window` is the fixed window, if there is one. `granted` counts from the beginning of the view.
    """

    def __init__(self, members: list[str], window: int | None, first_window: int) -> None:
        self.window = window
        self.ordered: set[Key] = set()
        self.consumed = dict.fromkeys(members, 0)
        self.granted = dict.fromkeys(members, first_window)


class BoundedWindow(Checker):
    """Counts what was ordered, or sent to be ordered, and what each member consumed of it and granted.

    `window` is None if it is adaptive. `sees_grants` is false where only the rows of a run are at hand.
    """

    GUARANTEE = BOUNDED_WINDOW

    def __init__(
        self, report: ReportViolation, window: int | None, *, counts_deliveries: bool, sees_grants: bool
    ) -> None:
        super().__init__(report)
        self._window = window
        self._counts_deliveries = counts_deliveries
        self._sees_grants = sees_grants
        self._views: dict[ViewKey, dict[str, _WindowUse]] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        key = view_key(view)
        if key in self._views:
            return
        protocol, members = find_protocol(ordering.order), list(map(str, view.members))
        first = self._window or WINDOW_FIRST
        uses: dict[str, _WindowUse] = {}
        if protocol.PRIORITIES_ACT == "consuming":
            pass  # Queued messages can be overtaken there: nothing has to wait for their consumption.
        elif issubclass(protocol, PacedProtocol):
            window = share(self._window, len(members)) if self._window else None
            uses = {member: _WindowUse(members, window, share(first, len(members))) for member in members}
        elif issubclass(protocol, FlowControlledProtocol):
            uses = {_ALL_SENDERS: _WindowUse(members, self._window, first)}
        self._views[key] = uses

    def on_sent(self, row: MessageRow) -> None:
        uses, process = self._views.get(view_of(row), {}), process_of(row)
        if _ALL_SENDERS in uses and row.position != NO_POSITION:
            self._order(row, uses[_ALL_SENDERS])
        elif process in uses and row.bytes and process == sender_of(row):
            self._order(row, uses[process])

    def on_delivered(self, row: MessageRow) -> None:
        uses, process = self._views.get(view_of(row), {}), process_of(row)
        for source in (_ALL_SENDERS, sender_of(row)):
            if source in uses and process in uses[source].consumed:
                uses[source].consumed[process] += row.count

    def on_granted(self, me: ProcessId, view: ViewKey, to: str, total: int, window: int, now: int) -> None:
        uses, process = self._views.get(view, {}), str(me)
        use = uses.get(_ALL_SENDERS) or uses.get(to)
        if use is None:
            return
        if self._counts_deliveries and total > use.consumed[process]:
            summary = (
                f"{process} reports {total} messages as consumed, it has delivered {use.consumed[process]}"
            )
            self.violated(summary, now, view=view, members=[process])
        if use.window is not None and window > use.window:
            summary = f"{process} grants a window of {window} messages, the window is fixed to {use.window}"
            self.violated(summary, now, view=view, members=[process])
        use.granted[process] = max(use.granted[process], total + window)

    def _order(self, row: MessageRow, use: _WindowUse) -> None:
        use.ordered.update(keys_of(row))
        count = len(use.ordered)
        if use.window is not None and self._counts_deliveries:
            slowest = min(use.consumed, key=lambda member: use.consumed[member])
            in_flight = count - use.consumed[slowest]
            if in_flight > use.window:
                self._exceeded(
                    row,
                    slowest,
                    f"{in_flight} messages are ordered and not consumed by {slowest}; the window is "
                    f"{use.window}",
                )
                return
        if self._sees_grants:
            lowest = min(use.granted, key=lambda member: use.granted[member])
            if count > use.granted[lowest]:
                self._exceeded(
                    row, lowest, f"{count} messages are ordered; {lowest} has granted {use.granted[lowest]}"
                )

    def _exceeded(self, row: MessageRow, member: str, summary: str) -> None:
        self.violated(
            summary,
            row.time_ns,
            view=view_of(row),
            position=row.position,
            messages=keys_of(row),
            members=[process_of(row), member],
        )
