"""View synchrony: members are told the same views, in one order, and deliver each message in its view."""

from priocast.core.guarantees import VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.membership.quorum import is_quorum
from priocast.simulation.checkers.checker import (
    Checker,
    Report,
    ViewKey,
    keys_of,
    name_of,
    process_of,
    text_of,
    view_of,
)
from priocast.trace.schema import GroupEventRow, MessageRow, TraceRow


class ViewSynchrony(Checker):
    """Knows the view that each life was told last, and all that were told of each view.

    - A life is a member of the views that it is told of, and their numbers grow.
    - A view is the same for all: its members, its first position, its reason, how it is ordered and by whom.
    - A message is delivered in the view that was told last, by members of it, from members of it, and at no
      place before the view's first position.
    - In a primary group there is one view of each number and no number is left out; who had not failed in a
      view when the next one came was a quorum of it.
    """

    PROPERTY = VIEW_SYNCHRONY

    def __init__(self, report: Report, primary: bool) -> None:
        super().__init__(report)
        self._primary = primary
        self._now_in: dict[str, GroupEventRow] = {}
        self._told: dict[ViewKey, GroupEventRow] = {}
        self._members: dict[ViewKey, frozenset[str]] = {}
        self._by_number: dict[int, GroupEventRow] = {}

    def on_view(self, row: GroupEventRow) -> None:
        process, view, members = process_of(row), view_of(row), row.members
        before = self._now_in.get(process)
        self._now_in[process] = row
        if process not in members:
            self._wrong(row, f"{process} is told of view {text_of(view)}, of which it is not a member")
        if members[0] != row.coordinator or len(set(members)) != len(members):
            self._wrong(row, f"{process} is told of view {text_of(view)} of {','.join(members)}")
        if before is not None and row.view <= before.view:
            self._wrong(row, f"{process} is told of view {text_of(view)} after {before.view}")
        first = self._told.setdefault(view, row)
        self._members[view] = frozenset(members)
        if _said(first) != _said(row):
            text = (
                f"{process} is told that view {text_of(view)} is {row.members} from {row.position} on "
                f"({row.reason}), {process_of(first)} was told {first.members} from {first.position} on "
                f"({first.reason}); ordered {row.view_order} and {first.view_order}"
            )
            self._wrong(row, text, process_of(first))
        if self._primary:
            self._check_chain(row, before)

    def _check_chain(self, row: GroupEventRow, before: GroupEventRow | None) -> None:
        same = self._by_number.setdefault(row.view, row)
        if same.coordinator != row.coordinator:
            text = f"there are two views {row.view}: of {row.members} and of {same.members}"
            self._wrong(row, text, process_of(same))
        if before is None:
            return
        if row.view != before.view + 1:
            text = f"{process_of(row)} goes from view {before.view} to {row.view}"
            self._wrong(row, text)
        members = [_parsed(member) for member in before.members]
        voters = [member for member in members if member.name not in row.failed]
        if not is_quorum(members, voters):
            follows = f"view {row.view} of {row.members} follows {before.members} ({row.reason})"
            text = f"{follows}: that is no quorum"
            self._wrong(row, text)

    def on_delivered(self, row: MessageRow) -> None:
        process, told = process_of(row), self._now_in.get(process_of(row))
        if told is None or view_of(told) != view_of(row):
            was_in = text_of(view_of(told)) if told else "no view"
            self._wrong(row, f"{process} delivers in view {text_of(view_of(row))} while it is in {was_in}")
            return
        message = name_of(keys_of(row)[0])
        if f"{row.sender}#{row.sender_incarnation}" not in self._members[view_of(row)]:
            self._wrong(row, f"{process} delivers {message}, whose sender is not in the view")
        if row.position < told.position:
            text = f"{process} delivers {message} at {row.position} in a view that begins at {told.position}"
            self._wrong(row, text)

    def _wrong(self, row: TraceRow, text: str, *others: str) -> None:
        messages = keys_of(row)[:1] if isinstance(row, MessageRow) else []
        self.violated(
            text,
            row.time_ns,
            position=row.position,
            messages=messages,
            members=[process_of(row), *others],
        )


def _said(row: GroupEventRow) -> tuple[object, ...]:
    return row.members, row.position, row.reason, row.orderer, row.view_order


def _parsed(process: str) -> ProcessId:
    name, _, incarnation = process.rpartition("#")
    return ProcessId(name, int(incarnation))
