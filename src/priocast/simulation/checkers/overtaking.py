"""Bounded overtaking: while a message waits at a member, few more urgent ones are sent there.

The bound applies from when the member knows that the message is numbered. Rows do not say when that is, but
there are two cases in which the member must know. The message is safe and somebody has consumed it: then
everybody has received what its number depends on. Or it is the member's own message, somebody has consumed
it, and the senders decide the numbers. Only these cases are checked, from that consumption until the
member's own. A joiner that takes over a state keeps what it will deliver later, and is not checked.
"""

from collections.abc import Iterable, Iterator

from priocast.core.guarantees import BOUNDED_OVERTAKING
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.checker import Checker, ReportViolation, is_joiner, reorders, view_key
from priocast.simulation.checkers.rows import (
    Key,
    ViewKey,
    is_addressed_to,
    keys_of,
    message_name,
    name_of,
    process_of,
    sender_of,
    urgency_of,
    view_of,
)
from priocast.trace.schema import MessageRow


class _OvertakenMessage:
    """A message that waits at a member: the row of its first consumer, and how often it was overtaken."""

    def __init__(self, consumed: MessageRow, position: int) -> None:
        self.consumed = consumed
        self.position = position
        self.urgency = urgency_of(consumed)
        self.overtaken = 0


class _ViewQueues:
    """One view: what anybody has consumed there, and what waits at each member."""

    def __init__(self, view: View) -> None:
        self.consumed: set[Key] = set()
        self.waiting: dict[str, dict[Key, _OvertakenMessage]] = {str(member): {} for member in view.members}


class BoundedOvertaking(Checker):
    """Counts the more urgent messages that members send while others wait there.

    `all_safe` says that every message is safe, `joiners_wait` that joiners take over a state, and
    `senders_decide` that the sender of a message decides its number.
    """

    GUARANTEE = BOUNDED_OVERTAKING

    def __init__(
        self,
        report: ReportViolation,
        bound: int,
        *,
        all_safe: bool,
        joiners_wait: bool,
        senders_decide: bool,
    ) -> None:
        super().__init__(report)
        self._bound = bound
        self._all_safe = all_safe
        self._joiners_wait = joiners_wait
        self._senders_decide = senders_decide
        self._joiners: set[str] = set()
        self._views: dict[ViewKey, _ViewQueues] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        if self._joiners_wait and is_joiner(me, view):
            self._joiners.add(str(me))
        if reorders(ordering):
            self._views.setdefault(view_key(view), _ViewQueues(view))

    def on_delivered(self, row: MessageRow) -> None:
        view = self._views.get(view_of(row))
        if view is None:
            return
        for position, key in enumerate(keys_of(row), row.position):
            view.waiting[process_of(row)].pop(key, None)
            if key not in view.consumed:
                view.consumed.add(key)
                for member in self._informed(row, view.waiting):
                    view.waiting[member][key] = _OvertakenMessage(row, position)

    def _informed(self, consumed: MessageRow, members: Iterable[str]) -> Iterator[str]:
        """Who must know the number of a message when it is first consumed, and has to consume it, too."""
        is_safe = consumed.safe or self._all_safe
        for member in members:
            knows = is_safe or (self._senders_decide and member == sender_of(consumed))
            if (
                knows
                and is_addressed_to(consumed.to, name_of(member))
                and member != process_of(consumed)
                and member not in self._joiners
            ):
                yield member

    def on_sent(self, row: MessageRow) -> None:
        view, process = self._views.get(view_of(row)), process_of(row)
        if view is None or not row.bytes:
            return
        for key, waiting in view.waiting[process].items():
            if waiting.urgency < urgency_of(row):
                waiting.overtaken += row.count
                if waiting.overtaken > self._bound:
                    self._exceeded(row, key, waiting)
                    return

    def _exceeded(self, row: MessageRow, key: Key, waiting: _OvertakenMessage) -> None:
        process, consumer, last = process_of(row), process_of(waiting.consumed), keys_of(row)[-1]
        self.violated(
            f"{message_name(key)} waits at {process}, {consumer} consumed it at position {waiting.position}, "
            f"and {process} has sent {waiting.overtaken} more urgent messages since, the last is "
            f"{message_name(last)}; at most {self._bound} may overtake it",
            row.time_ns,
            view=view_of(row),
            position=waiting.position,
            messages=[key, last],
            members=[process, consumer],
        )
