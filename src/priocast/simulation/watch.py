"""The watch: takes every row that the members' recorders write, and shows it to the checkers at once."""

from collections.abc import Callable
from typing import Any

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.member import Member
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.checker import Checker, Violation
from priocast.trace.recorder import Recorder
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, STATE, STOPPED, VIEW, TraceRow

_HANDLERS = {
    BROADCAST: "on_broadcast",
    SENT: "on_sent",
    RECEIVED: "on_received",
    DELIVERED: "on_delivered",
    VIEW: "on_view",
    STOPPED: "on_stopped",
    STATE: "on_state",
}


class Watch:
    """One run's rows, in the order in which they happened, and the violations found in them."""

    def __init__(self, seed: int) -> None:
        self.rows: list[TraceRow] = []
        self.violations: list[Violation] = []
        self._seed = seed
        self._checkers: list[Checker] = []
        self._handlers: dict[str, list[Callable[[Any], None]]] = {}

    def appoint(self, checkers: list[Checker]) -> None:
        """Let these see the rows; each gets only the events that it has a handler for."""
        self._checkers += checkers
        for event, name in _HANDLERS.items():
            self._handlers.setdefault(event, []).extend(
                getattr(checker, name)
                for checker in checkers
                if getattr(type(checker), name) is not getattr(Checker, name)
            )

    def emit(self, row: TraceRow) -> None:
        """A member did something."""
        self.rows.append(row)
        for handler in self._handlers.get(row.event, ()):
            handler(row)

    def installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        """A member's protocol works in this view from here on."""
        for checker in self._checkers:
            checker.on_installed(me, view, ordering)

    def report(self, violation: Violation) -> None:
        """A promise was not kept."""
        self.violations.append(msgspec.structs.replace(violation, seed=self._seed))

    def finish(self, now: int) -> None:
        """Nothing more will happen. The first checker that finds something wrong has the last word."""
        for checker in self._checkers:
            checker.finish(now)
            if self.violations:
                return


class Witness(Recorder):
    """Writes down what one member does, and tells the watch what rows do not say."""

    def __init__(self, me: ProcessId, watch: Watch) -> None:
        super().__init__(me, watch.emit)
        self.member: Member | None = None
        self._watch = watch

    def installed(self, view: View) -> None:
        super().installed(view)
        assert self.member is not None
        self._watch.installed(self.member.me, view, self.member.membership.ordering)
