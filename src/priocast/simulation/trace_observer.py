"""Passes everything that the members' recorders write to the checkers, as it happens."""

from collections.abc import Callable
from typing import Any

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.protocol import Packet
from priocast.core.view import View
from priocast.core.violation import Violation
from priocast.member import Member
from priocast.membership.packets import Ordering
from priocast.protocols.flow.packets import Consumed
from priocast.simulation.checkers.checker import Checker, view_key
from priocast.simulation.checkers.rows import ViewKey, departure_event, state_event, view_event
from priocast.trace.recorder import Recorder
from priocast.trace.schema import (
    BROADCAST,
    DELIVERED,
    RECEIVED,
    SENT,
    STATE,
    STOPPED,
    VIEW,
    ServiceRow,
    TraceRow,
)

_SERVICE = "service"
#: The handler of each kind of row, and what it is called with.
_HANDLERS: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    BROADCAST: ("on_broadcast", None),
    SENT: ("on_sent", None),
    RECEIVED: ("on_received", None),
    DELIVERED: ("on_delivered", None),
    VIEW: ("on_view", view_event),
    STOPPED: ("on_departure", departure_event),
    STATE: ("on_state", state_event),
    _SERVICE: ("on_service", None),
}


class TraceObserver:
    """The rows of one run, in the order in which they happened, and the violations found in them."""

    def __init__(self, run: str) -> None:
        self.rows: list[TraceRow] = []
        self.violations: list[Violation] = []
        self._run = run
        self._checkers: list[Checker] = []
        self._handlers: dict[str, list[Callable[[Any], None]]] = {}

    def add(self, checkers: list[Checker]) -> None:
        """Pass the rows to these checkers; each gets only the events that it has a handler for."""
        self._checkers += checkers
        for event, (name, _) in _HANDLERS.items():
            self._handlers.setdefault(event, []).extend(
                getattr(checker, name)
                for checker in checkers
                if getattr(type(checker), name) is not getattr(Checker, name)
            )

    def emit(self, row: TraceRow) -> None:
        """A member did something."""
        self.rows.append(row)
        kind = _SERVICE if isinstance(row, ServiceRow) else row.event
        handlers = self._handlers.get(kind)
        if handlers:
            convert = _HANDLERS[kind][1]
            event = convert(row) if convert is not None else row
            for handler in handlers:
                handler(event)

    def installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        """A member has installed a view."""
        for checker in self._checkers:
            checker.on_installed(me, view, ordering)

    def granted(self, me: ProcessId, view: ViewKey, to: str, consumed: Consumed, now: int) -> None:
        """A member has granted a window."""
        for checker in self._checkers:
            checker.on_granted(me, view, to, consumed.total, consumed.window, now)

    def report(self, violation: Violation) -> None:
        """A guarantee does not hold."""
        self.violations.append(msgspec.structs.replace(violation, run=self._run))

    def finish(self, now: int) -> None:
        """The run is over. Stop at the first checker that finds a violation."""
        for checker in self._checkers:
            checker.finish(now)
            if self.violations:
                return


class CheckedRecorder(Recorder):
    """Records what one member does, and passes on what rows do not contain: installed views and grants."""

    def __init__(self, me: ProcessId, observer: TraceObserver) -> None:
        super().__init__(me, observer.emit)
        self.member: Member | None = None
        self._me = me
        self._observer = observer
        self._installed: ViewKey = (0, "")

    def observes(self, packet: type[Packet]) -> bool:
        return packet is Consumed or super().observes(packet)

    def installed(self, view: View) -> None:
        super().installed(view)
        assert self.member is not None
        self._installed = view_key(view)
        self._observer.installed(self.member.me, view, self.member.membership.ordering)

    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
        super().sent(packet, to, now, backlog)
        if isinstance(packet, Consumed):
            self._observer.granted(self._me, self._installed, str(to) if to else "", packet, now)
