"""What a checker is: it sees what every member does, knows nothing of the protocol, and reports violations.

Checkers read the rows of the recorder as they are written. So the simulator stops at the first violation, and
a checker finds the same in the trace of a run.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.core.violation import Violation
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.rows import (
    DepartureEvent,
    Key,
    StateEvent,
    ViewEvent,
    ViewKey,
    message_name,
    view_name,
)
from priocast.trace.recorder import view_order
from priocast.trace.schema import NO_POSITION, MessageRow, ServiceRow

ReportViolation = Callable[[Violation], None]


class Checker:
    """The base of all checkers; a subclass has the handlers of the events that it needs."""

    GUARANTEE: ClassVar[str]

    def __init__(self, report: ReportViolation) -> None:
        self._report = report

    def on_broadcast(self, row: MessageRow) -> None: ...
    def on_sent(self, row: MessageRow) -> None: ...
    def on_received(self, row: MessageRow) -> None: ...
    def on_delivered(self, row: MessageRow) -> None: ...
    def on_view(self, event: ViewEvent) -> None: ...
    def on_departure(self, event: DepartureEvent) -> None: ...
    def on_state(self, event: StateEvent) -> None: ...
    def on_service(self, row: ServiceRow) -> None: ...

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        """A member has installed a view; its application will be notified of it later."""

    def on_granted(self, me: ProcessId, view: ViewKey, to: str, total: int, window: int, now: int) -> None:
        """A member reports `total` messages as consumed and grants `window` more, to all or to one sender."""

    def finish(self, now: int) -> None:
        """The run is over."""

    def violated(
        self,
        summary: str,
        time_ns: int,
        *,
        view: ViewKey | None = None,
        position: int = NO_POSITION,
        messages: Iterable[Key] = (),
        members: Iterable[str] = (),
    ) -> None:
        """Report that the guarantee does not hold here."""
        self._report(
            Violation(
                guarantee=self.GUARANTEE,
                summary=summary,
                view=view_name(view) if view else "",
                position=None if position == NO_POSITION else position,
                members=tuple(members),
                messages=tuple(map(message_name, messages)),
                details={"time_ns": time_ns},
            )
        )


def view_key(view: View) -> ViewKey:
    """A view, as rows name it."""
    return view.number, str(view.coordinator)


def reorders(ordering: Ordering) -> bool:
    """Whether messages that wait for the applications are re-ordered by priority."""
    order = view_order(ordering)
    return order.priorities_act == "consuming" and not order.is_plain


def is_joiner(me: ProcessId, view: View) -> bool:
    """Whether a member is new in a view in which others are not."""
    here_before = [member for part in view.parts if part.view for member in part.members]
    return bool(here_before) and me not in here_before
