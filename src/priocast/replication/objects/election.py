"""Leader election: one of the candidates leads, and all members know which one, from the same position on.

The leader leads until it withdraws or is not in the view any more. Then the candidate that stands for longest
leads, among those of the highest priority. A leader that was cut off learns late that it was replaced: the
*term* grows with every change, so what it still sends can be told from what its successor sends, like a
fencing token.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from priocast.core.errors import DeadlineExceeded
from priocast.core.priority import ROUTINE
from priocast.core.view import View
from priocast.replication.objects.methods import query, replicated
from priocast.replication.objects.replicated_object import ReplicatedObject

LEAD_SECONDS = 30.0


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    """A process that stands: one incarnation of a member."""

    process: str
    priority: int


class LeaderElection(ReplicatedObject):
    """Elects one of the members that stand. `candidates` are in the order in which they would lead.

    `leader` is the process that leads, or empty; `term` counts the leaders so far.
    """

    candidates: list[Candidate]
    leader: str
    term: int

    def __init__(self) -> None:
        self.candidates = []
        self.leader = ""
        self.term = 0

    @property
    def is_leader(self) -> bool:
        """Whether this member leads, as far as it knows."""
        return self.leader == str(self.replica.me)

    @asynccontextmanager
    async def lead(
        self, priority: int = ROUTINE, *, timeout_seconds: float = LEAD_SECONDS
    ) -> AsyncIterator[int]:
        """Stand, and wait to become the leader, within an `async with` that yields the term; then withdraw.

        - `priority`: candidates of a higher one lead first.
        - `timeout_seconds`: how long to wait. Then `DeadlineExceeded` is raised.
        """
        deadline = time.monotonic() + timeout_seconds
        try:
            while not self.is_leader:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"timed out after {timeout_seconds:g} s: {self.leader} leads")
                await self.stand.at(priority=priority)()
                await self.replica.wait_until(lambda: self.is_leader or not self._stands(), left)
            yield self.term
        finally:
            await self.withdraw()

    async def wait_leader(self, timeout_seconds: float = LEAD_SECONDS) -> str:
        """Wait until somebody leads; return the process. `DeadlineExceeded` after `timeout_seconds`."""
        await self.replica.wait_until(lambda: bool(self.leader), timeout_seconds)
        return self.leader

    @replicated
    def stand(self) -> bool:
        """Be a candidate, with the priority of the call; return whether this member leads now."""
        process = str(self.context.sender)
        self.candidates = [each for each in self.candidates if each.process != process]
        self.candidates.append(Candidate(process, self.context.priority))
        self.candidates.sort(key=lambda each: -each.priority)
        self._elect()
        return self.leader == process

    @replicated
    def withdraw(self) -> None:
        """Be no candidate any more; if this member leads, another one does now."""
        process = str(self.context.sender)
        self.candidates = [each for each in self.candidates if each.process != process]
        self._elect()

    @query
    def current(self) -> tuple[str, int]:
        """The leader and the term, linearizable."""
        return self.leader, self.term

    def on_view(self, view: View) -> None:
        """Processes that are not in the view do not lead, and are no candidates."""
        present = {str(member) for member in view.members}
        self.candidates = [each for each in self.candidates if each.process in present]
        self._elect()

    def _elect(self) -> None:
        processes = [each.process for each in self.candidates]
        if self.leader in processes:
            return
        self.leader = processes[0] if processes else ""
        self.term += bool(self.leader)

    def _stands(self) -> bool:
        return any(each.process == str(self.replica.me) for each in self.candidates)
