"""Which members' disks count: an answer of a durable group waits for a majority of them, its *voters*.

The founders are the first voters. One is added or removed at a time, by an entry of the log, and the next one
only when that entry is on the disks of a majority: so any two majorities have a member in common.
"""

from collections.abc import Awaitable, Callable

from priocast.core.errors import CommandFailed
from priocast.core.identity import check_name
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.sessions import Outcome

Change = Callable[[str, bool, float], Awaitable[Outcome]]
CHANGE_SECONDS = 30.0


class Voters:
    """The voters of one group, as a member sees them; `Replica.voters` is one."""

    def __init__(self, state: ReplicatedState, change: Change) -> None:
        self._state = state
        self._change = change

    @property
    def names(self) -> tuple[str, ...]:
        """The members whose disks count; none if the group has no logs."""
        return self._state.lineage.voters

    async def add(self, member: str, *, timeout_seconds: float = CHANGE_SECONDS) -> None:
        """Have the disk of a member count that is in the group and has a log.

        `CommandFailed` is raised if it cannot, `DeadlineExceeded` after `timeout_seconds`.
        """
        await self._set(member, True, timeout_seconds)

    async def remove(self, member: str, *, timeout_seconds: float = CHANGE_SECONDS) -> None:
        """Do without the disk of a member, which may be gone for good; its log does not count any more.

        `CommandFailed` is raised if it cannot, `DeadlineExceeded` after `timeout_seconds`.
        """
        await self._set(member, False, timeout_seconds)

    async def _set(self, member: str, is_voter: bool, timeout_seconds: float) -> None:
        check_name(member, "member")
        outcome = await self._change(member, is_voter, timeout_seconds)
        if outcome.kind == "failed":
            raise CommandFailed(f"the voters were not changed: {outcome.body.decode()}", "InvalidInput")
