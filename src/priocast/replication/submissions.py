"""What one replica has asked the group for and has no answer to: commands, and other requests.

A command counts as outstanding until its outcome is known here, whether or not somebody still waits for it:
its number must not fall below the floor while a message with it may be on its way.
"""

import asyncio
import time
from collections.abc import Iterator

import msgspec

from priocast.core.errors import GroupClosed
from priocast.replication.commands import CommandId
from priocast.replication.sessions import OUTSTANDING_MAX, Outcome, SessionTable


class OutstandingCommand(msgspec.Struct, frozen=True):
    """A command that was submitted at this time of the local clock."""

    outcome: asyncio.Future[Outcome]
    at: float


class Submissions:
    """The outstanding commands of one session, by number."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._next = 0
        self._outstanding: dict[int, OutstandingCommand] = {}
        self._room = asyncio.Event()
        self._room.set()

    @property
    def floor(self) -> int:
        """The outcomes of all commands with a lower number are known."""
        return next(iter(self._outstanding), self._next)

    async def open(self) -> tuple[CommandId, asyncio.Future[Outcome]]:
        """The id of the next command, and its outcome; waits while too many are outstanding."""
        while self._next - self.floor >= OUTSTANDING_MAX:
            self._room.clear()
            await self._room.wait()
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        number, self._next = self._next, self._next + 1
        self._outstanding[number] = OutstandingCommand(outcome, time.monotonic())
        return CommandId(self._session, number), outcome

    def finish(self, command: CommandId, outcome: Outcome) -> float | None:
        """A command has its outcome; return when it was submitted, if that was here."""
        if command.session != self._session:
            return None
        finished = self._outstanding.pop(command.number, None)
        if finished is None:
            return None
        self._room.set()
        if not finished.outcome.done():
            finished.outcome.set_result(outcome)
        return finished.at

    def restored(self, sessions: SessionTable) -> Iterator[tuple[CommandId, Outcome]]:
        """The outstanding commands whose outcome is in a state that was received."""
        for number in list(self._outstanding):
            command = CommandId(self._session, number)
            outcome = sessions.outcome(command)
            if outcome is not None and outcome.kind != "unfinished":
                yield command, outcome

    def close(self, reason: GroupClosed) -> None:
        """There will be no more outcomes."""
        for outstanding in self._outstanding.values():
            if not outstanding.outcome.done():
                outstanding.outcome.set_exception(reason)
                outstanding.outcome.exception()  # otherwise asyncio reports one that nobody waits for
        self._outstanding.clear()
        self._room.set()
