"""What a checker is: it sees what every member does, knows nothing of the protocol, and reports violations.

Checkers read the rows that the recorder writes, as they are written. So the simulator stops at the first
violation, and what a checker says of a run can be said again of the run's trace.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

import msgspec

from priocast.core.identity import MessageId, ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.trace.recorder import view_order
from priocast.trace.schema import NO_POSITION, GroupEventRow, MessageRow, TraceRow

Key = tuple[str, int, int, int]
"""The name of a message, as rows have it: sender, incarnation, level, number."""

ViewKey = tuple[int, str]
"""The name of a view, as rows have it: number and coordinator."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that was not kept: which, when, where, and by which messages and members."""

    property: str
    text: str
    time_ns: int
    seed: int = -1
    position: int = NO_POSITION
    messages: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f", position {self.position}" if self.position != NO_POSITION else ""
        return f"seed {self.seed}: {self.property} violated at {self.time_ns:,} ns{place}: {self.text}"


Report = Callable[[Violation], None]


class Checker:
    """The base of all checkers; a subclass has the handlers of the events that it needs."""

    PROPERTY: ClassVar[str]

    def __init__(self, report: Report) -> None:
        self._report = report

    def on_broadcast(self, row: MessageRow) -> None: ...
    def on_sent(self, row: MessageRow) -> None: ...
    def on_received(self, row: MessageRow) -> None: ...
    def on_delivered(self, row: MessageRow) -> None: ...
    def on_view(self, row: GroupEventRow) -> None: ...
    def on_stopped(self, row: GroupEventRow) -> None: ...
    def on_state(self, row: GroupEventRow) -> None: ...

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        """A member's protocol works in this view from here on; its application will hear of it."""

    def finish(self, now: int) -> None:
        """Nothing more will happen."""

    def violated(
        self,
        text: str,
        time_ns: int,
        *,
        position: int = NO_POSITION,
        messages: Iterable[Key] = (),
        members: Iterable[str] = (),
    ) -> None:
        """Report that the property does not hold here."""
        self._report(
            Violation(
                property=self.PROPERTY,
                text=text,
                time_ns=time_ns,
                position=position,
                messages=tuple(map(name_of, messages)),
                members=tuple(members),
            )
        )


def keys_of(row: MessageRow) -> list[Key]:
    """The messages of a row."""
    sender, incarnation, level = row.sender, row.sender_incarnation, row.level
    return [(sender, incarnation, level, number) for number in range(row.first, row.first + row.count)]


def name_of(key: Key) -> str:
    """How a message is called in texts."""
    sender, incarnation, level, number = key
    return str(MessageId(ProcessId(sender, incarnation), level, number))


def process_of(row: TraceRow) -> str:
    """The life that a row is about."""
    return f"{row.member}#{row.incarnation}"


def view_of(row: TraceRow) -> ViewKey:
    """The view that a row is about."""
    return row.view, row.coordinator


def text_of(view: ViewKey) -> str:
    """How a view is called in texts."""
    return f"{view[0]}@{view[1]}"


def re_orders(ordering: Ordering) -> bool:
    """Whether what waits for the applications is re-ordered by priority."""
    order = view_order(ordering)
    return order.priorities_act == "consuming" and not order.is_plain


def is_joiner(me: ProcessId, view: View) -> bool:
    """Whether a member is new in a view in which others are not."""
    here_before = [member for part in view.parts if part.view for member in part.members]
    return bool(here_before) and me not in here_before
