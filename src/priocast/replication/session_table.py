"""The sessions of all replicas: which commands have been applied. The table is part of the replicated state.

Of too many sessions those are forgotten that were silent for longest and whose process is not in the view.
"""

from collections.abc import Container

from priocast.replication.commands import CommandId
from priocast.replication.sessions import (
    FORGOTTEN,
    OUTSTANDING_MAX,
    SESSIONS_MAX,
    VOID,
    CommandSession,
    Outcome,
    name_of,
)


class SessionTable:
    """All sessions, the one that was silent for longest first."""

    def __init__(self, sessions: dict[str, CommandSession] | None = None) -> None:
        self.sessions = sessions or {}
        self._last = next(reversed(self.sessions), "")
        self._last_session = self.sessions.get(self._last)

    def outcome(self, command: CommandId) -> Outcome | None:
        """What became of a command; None if it was not applied yet, as far as the group remembers."""
        session = self.sessions.get(command.session)
        return session.outcome(command.number) if session is not None else None

    def on_command(self, command: CommandId, floor: int, processes: Container[str]) -> Outcome | None:
        """A command was delivered: return its outcome if it must not be applied (again).

        `processes` are the names of the processes in the view: their sessions are not forgotten.
        """
        name, number, session = command.session, command.number, self._last_session
        if session is None or name != self._last:
            if floor and name not in self.sessions:
                return FORGOTTEN
            session = self._put_last(name, processes)
        if floor > session.floor:
            session.raise_floor(floor)
        lowest = session.floor
        if lowest <= number < lowest + OUTSTANDING_MAX:
            is_known = number in session.results or number in session.others
            return session.outcome(number) if is_known else None
        return FORGOTTEN

    def _put_last(self, name: str, processes: Container[str]) -> CommandSession:
        """The session that is not silent now, which may be new."""
        session = self.sessions.pop(name, None) or CommandSession()
        self.sessions[name] = self._last_session = session
        self._last = name
        if len(self.sessions) > SESSIONS_MAX:
            self._forget(processes)
        return session

    def add(self, command: CommandId, outcome: Outcome) -> None:
        """A command that was delivered has this outcome now."""
        session = self._last_session
        if session is None or command.session != self._last:
            session = self.sessions[command.session]
        session.add(command.number, outcome)

    def settle(self, command: CommandId, is_own: bool) -> Outcome:
        """Make sure that a command is not applied later; return what became of it.

        A session that is not known was forgotten, unless the one that asks `is_own`: it has sent nothing yet.
        """
        session = self.sessions.get(command.session)
        if session is None and is_own:
            session = self.sessions[command.session] = self._last_session = CommandSession()
            self._last = command.session
        if session is None or not session.accepts(command.number):
            return FORGOTTEN
        known = session.outcome(command.number)
        if known is None:
            session.add(command.number, VOID)
        return known or VOID

    def _forget(self, processes: Container[str]) -> None:
        """Forget the session that was silent for longest, if possible one whose process is gone."""
        gone = (each for each in self.sessions if name_of(each) not in processes and each != self._last)
        del self.sessions[next(gone, next(iter(self.sessions)))]
