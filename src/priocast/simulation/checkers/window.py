"""Ordering window: what is on its way into the order and not consumed by a view's slowest member is bounded.

Priorities act only on what has no place yet, so a window that grows unseen switches them off without
breaking any other promise.

Where packets give out places, all that have one count, and the whole window is the bound. Where every member
sends by itself (`PacedProtocol`), what it has sent of its own counts, and its share of the window is the
bound. A layer hands messages on from the order below before the application has them: it is not judged.
"""

from priocast.core.guarantees import BOUNDED_WINDOW
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.protocols.flow.base import PlacingProtocol
from priocast.protocols.flow.grants import share
from priocast.protocols.flow.paced import PacedProtocol
from priocast.simulation.checkers.checker import Checker, Key, Report, ViewKey, keys_of, process_of, view_of
from priocast.trace.schema import NO_POSITION, MessageRow

_EVERYBODY = ""


class _Account:
    """What one member, or everybody, has put on its way in a view, and who has consumed how much of that."""

    def __init__(self, members: list[str], window: int) -> None:
        self.window = window
        self.consumed = dict.fromkeys(members, 0)
        self.put: set[Key] = set()


class Window(Checker):
    """Counts what was put on its way into the order, and what each member has consumed of it."""

    PROPERTY = BOUNDED_WINDOW

    def __init__(self, report: Report, window: int) -> None:
        super().__init__(report)
        self._window = window
        self._accounts: dict[ViewKey, dict[str, _Account]] = {}

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        key = (view.number, str(view.coordinator))
        if key in self._accounts:
            return
        protocol, members = find_protocol(ordering.order), list(map(str, view.members))
        accounts: dict[str, _Account] = {}
        if protocol.PRIORITIES_ACT == "consuming":
            pass  # What is queued can be overtaken there: nothing has to wait for its consumption.
        elif issubclass(protocol, PacedProtocol):
            window = share(self._window, len(members))
            accounts = {member: _Account(members, window) for member in members}
        elif issubclass(protocol, PlacingProtocol):
            accounts = {_EVERYBODY: _Account(members, self._window)}
        self._accounts[key] = accounts

    def on_sent(self, row: MessageRow) -> None:
        accounts, sender = self._accounts.get(view_of(row), {}), process_of(row)
        if _EVERYBODY in accounts and row.position != NO_POSITION:
            self._put(row, accounts[_EVERYBODY])
        elif sender in accounts and row.bytes and sender == f"{row.sender}#{row.sender_incarnation}":
            self._put(row, accounts[sender])

    def on_delivered(self, row: MessageRow) -> None:
        accounts = self._accounts.get(view_of(row), {})
        for source in (_EVERYBODY, f"{row.sender}#{row.sender_incarnation}"):
            if source in accounts and process_of(row) in accounts[source].consumed:
                accounts[source].consumed[process_of(row)] += row.count

    def _put(self, row: MessageRow, account: _Account) -> None:
        account.put.update(keys_of(row))
        slowest = min(account.consumed, key=lambda member: account.consumed[member])
        under_way = len(account.put) - account.consumed[slowest]
        if under_way > account.window:
            text = f"{under_way} messages are ordered and not consumed by {slowest}, {account.window} may be"
            self.violated(
                text,
                row.time_ns,
                position=row.position,
                messages=keys_of(row),
                members=[process_of(row), slowest],
            )
