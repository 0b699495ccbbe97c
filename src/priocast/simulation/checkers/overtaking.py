"""Bounded overtaking: while a member lets a message wait, it sends no more than so many more urgent ones.

That is promised from when the member knows that the message has its number. Rows do not say when that is, but
there are two cases in which everybody can tell that it knows: the message is safe and somebody has consumed
it, for then all hold what it rests on; or it is the member's own, somebody has consumed it, and it is the
senders that decide. Only those are judged, from that consumption on until the member's own. A joiner that
takes over a state keeps what it will deliver later, and is not judged.
"""

from collections.abc import Iterable, Iterator

from priocast.core.guarantees import BOUNDED_OVERTAKING
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.checker import (
    Checker,
    Key,
    Report,
    ViewKey,
    is_joiner,
    keys_of,
    name_of,
    process_of,
    re_orders,
    view_of,
)
from priocast.trace.recorded_run import sender_of, urgency_of
from priocast.trace.schema import MessageRow


class _Waiting:
    """A message that waits at a member: the row of its first consumer, and how often it was overtaken."""

    def __init__(self, consumed: MessageRow, position: int) -> None:
        self.consumed = consumed
        self.position = position
        self.urgency = urgency_of(consumed)
        self.overtaken = 0


class _Account:
    """One view: what anybody has consumed there, and what waits at each member."""

    def __init__(self, view: View) -> None:
        self.consumed: set[Key] = set()
        self.waiting: dict[str, dict[Key, _Waiting]] = {str(member): {} for member in view.members}


class Overtaking(Checker):
    """Counts the more urgent messages that members send while others wait there.

    `all_safe` says that every message is, `joiners_wait` that they take over a state, `senders_decide` that
    whoever sends a message decides its number.
    """

    PROPERTY = BOUNDED_OVERTAKING

    def __init__(
        self, report: Report, bound: int, *, all_safe: bool, joiners_wait: bool, senders_decide: bool
    ) -> None:
        super().__init__(report)
        self._bound = bound
        self._all_safe = all_safe
        self._joiners_wait = joiners_wait
        self._senders_decide = senders_decide
        self._joiners: set[str] = set()
        self._accounts: dict[ViewKey, _Account] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        if self._joiners_wait and is_joiner(me, view):
            self._joiners.add(str(me))
        if re_orders(ordering):
            self._accounts.setdefault((view.number, str(view.coordinator)), _Account(view))

    def on_delivered(self, row: MessageRow) -> None:
        account = self._accounts.get(view_of(row))
        if account is None:
            return
        for position, key in enumerate(keys_of(row), row.position):
            account.waiting[process_of(row)].pop(key, None)
            if key not in account.consumed:
                account.consumed.add(key)
                for member in self._who_know(row, account.waiting):
                    account.waiting[member][key] = _Waiting(row, position)

    def _who_know(self, consumed: MessageRow, members: Iterable[str]) -> Iterator[str]:
        """Who surely knows, when a message is consumed for the first time, and has to consume it, too."""
        is_safe, to = consumed.safe or self._all_safe, consumed.to.split(",")
        for member in members:
            knows = is_safe or (self._senders_decide and member == sender_of(consumed))
            is_for_it = not consumed.to or member.rpartition("#")[0] in to
            if knows and is_for_it and member != process_of(consumed) and member not in self._joiners:
                yield member

    def on_sent(self, row: MessageRow) -> None:
        account, process = self._accounts.get(view_of(row)), process_of(row)
        if account is None or not row.bytes:
            return
        for key, waiting in account.waiting[process].items():
            if waiting.urgency < urgency_of(row):
                waiting.overtaken += row.count
                if waiting.overtaken > self._bound:
                    self._wrong(row, key, waiting)
                    return

    def _wrong(self, row: MessageRow, key: Key, waiting: _Waiting) -> None:
        process, consumer, last = process_of(row), process_of(waiting.consumed), keys_of(row)[-1]
        text = (
            f"{process} lets {name_of(key)} wait, which {consumer} consumed at {waiting.position}, and has "
            f"sent {waiting.overtaken} more urgent ones since, the last {name_of(last)}; {self._bound} may be"
        )
        messages, members = [key, last], [process, consumer]
        self.violated(text, row.time_ns, position=waiting.position, messages=messages, members=members)
