"""View synchrony: members agree on the views and their order, and deliver each message in its view."""

from priocast.core.guarantees import VIEW_SYNCHRONY
from priocast.membership.quorum import is_quorum
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.rows import (
    ViewEvent,
    ViewKey,
    keys_of,
    message_name,
    parse_process,
    process_of,
    sender_of,
    view_name,
    view_of,
)
from priocast.trace.schema import MessageRow


class ViewSynchrony(Checker):
    """Knows the present view of each incarnation, and what each view was said to be.

    - An incarnation is a member of its views, and their numbers grow.
    - A view is the same for all: its members, its first position, its reason, how it is ordered and by whom.
    - A message is delivered in the present view, by and from members of it, and not before the view's first
      position.
    - In a primary group there is one view of each number and no number is skipped; those who had not failed
      when the next view was agreed on were a quorum of the view before it.
    """

    GUARANTEE = VIEW_SYNCHRONY

    def __init__(self, report: ReportViolation, primary: bool) -> None:
        super().__init__(report)
        self._primary = primary
        self._present: dict[str, ViewEvent] = {}
        self._first: dict[ViewKey, ViewEvent] = {}
        self._members: dict[ViewKey, frozenset[str]] = {}
        self._by_number: dict[int, ViewEvent] = {}

    def on_view(self, event: ViewEvent) -> None:
        process, members, name = event.process, event.members, view_name(event.view)
        before = self._present.get(process)
        self._present[process] = event
        if process not in members:
            self._wrong_view(event, f"{process} installs view {name}, of which it is not a member")
        if members[0] != event.view[1] or len(set(members)) != len(members):
            self._wrong_view(event, f"{process} installs view {name} of {','.join(members)}")
        if before is not None and event.view[0] <= before.view[0]:
            self._wrong_view(event, f"{process} installs view {name} after {before.view[0]}")
        first = self._first.setdefault(event.view, event)
        self._members[event.view] = frozenset(members)
        if _content(first) != _content(event):
            summary = (
                f"{process} installs view {name} as {_described(event)}, "
                f"{first.process} installed it as {_described(first)}"
            )
            self._wrong_view(event, summary, first.process)
        if self._primary:
            self._check_chain(event, before)

    def _check_chain(self, event: ViewEvent, before: ViewEvent | None) -> None:
        number = event.view[0]
        same = self._by_number.setdefault(number, event)
        if same.view != event.view:
            summary = (
                f"there are two views {number}: of {','.join(event.members)} and {','.join(same.members)}"
            )
            self._wrong_view(event, summary, same.process)
        if before is None:
            return
        if number != before.view[0] + 1:
            self._wrong_view(event, f"{event.process} skips from view {before.view[0]} to {number}")
        members = [parse_process(member) for member in before.members]
        voters = [member for member in members if member.name not in event.reason.failed]
        if not is_quorum(members, voters):
            self._wrong_view(
                event,
                f"view {number} of {','.join(event.members)} follows {','.join(before.members)} "
                f"({event.reason}): those who had not failed were no quorum",
            )

    def on_delivered(self, row: MessageRow) -> None:
        process, view = process_of(row), view_of(row)
        present = self._present.get(process)
        if present is None or present.view != view:
            is_in = view_name(present.view) if present else "no view"
            self._wrong_delivery(row, f"{process} delivers in view {view_name(view)} while it is in {is_in}")
            return
        message = message_name(keys_of(row)[0])
        if sender_of(row) not in self._members[view]:
            self._wrong_delivery(row, f"{process} delivers {message}, whose sender is not in the view")
        if row.position < present.position:
            self._wrong_delivery(
                row,
                f"{process} delivers {message} at position {row.position} in a view that begins at "
                f"{present.position}",
            )

    def _wrong_view(self, event: ViewEvent, summary: str, *others: str) -> None:
        members = [event.process, *others]
        position = event.position
        self.violated(summary, event.time_ns, view=event.view, position=position, members=members)

    def _wrong_delivery(self, row: MessageRow, summary: str) -> None:
        self.violated(
            summary,
            row.time_ns,
            view=view_of(row),
            position=row.position,
            messages=keys_of(row)[:1],
            members=[process_of(row)],
        )


def _content(event: ViewEvent) -> tuple[object, ...]:
    return event.members, event.position, event.reason, event.orderer, event.order


def _described(event: ViewEvent) -> str:
    members = ",".join(event.members)
    return f"{members} from position {event.position} on ({event.reason}), ordered by {event.order}"
