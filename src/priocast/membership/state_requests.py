"""Who may fetch the application's state, and how often a snapshot is taken for that.

The state goes to members that wait for it, because they joined, and to nobody else. A member that joins may
be in the new view before this one is: its request is kept until then. A snapshot costs the application time,
so members cannot demand one as often as they like.
"""

from collections import deque

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.options import MEMBERS_MAX
from priocast.membership.packets import FetchState

SNAPSHOTS_PER_SECOND = 4
_SECOND = 1_000_000_000


class StateRequests:
    """The members that may fetch the state, each up to the position at which it joined."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._joining: dict[ProcessId, int] = {}
        self._early: dict[ProcessId, FetchState] = {}
        self._snapshots_at: deque[int] = deque(maxlen=SNAPSHOTS_PER_SECOND)

    def on_view(
        self, view: View, position: int, *, is_new: bool, has_state: bool
    ) -> list[tuple[ProcessId, FetchState]]:
        """A view was installed, at this position; return the requests that came before it.

        A member that is new itself does not know which of the others still wait.
        """
        older = {member for part in view.parts if part.view for member in part.members}
        new = [member for member in view.members if is_new or member not in older]
        joining = {member: at for member, at in self._joining.items() if member in view.members}
        if older and has_state:
            joining |= {member: position for member in new if member not in joining}
        self._view, self._joining = view, joining
        early, self._early = self._early, {}
        return [each for each in early.items() if each[1].position <= joining.get(each[0], -1)]

    def admit(self, process: ProcessId, fetch: FetchState) -> bool:
        """Whether to answer a request now; False if it is kept. Raises Rejected if it may not be answered."""
        if self._view is None or fetch.view.number > self._view.number:
            if len(self._early) < MEMBERS_MAX:
                self._early[process] = fetch
            return False
        position = self._joining.get(process)
        if position is None:
            raise Rejected("state for a process that is not joining", f"{process} asks for it")
        if fetch.position > position:
            raise Rejected("state at another position", f"{process} joined at {position}")
        return True

    def admit_snapshot(self, now: int) -> bool:
        """Whether a new snapshot may be taken for a request; False if there were too many of late."""
        times = self._snapshots_at
        if len(times) == SNAPSHOTS_PER_SECOND and now - times[0] < _SECOND:
            return False
        times.append(now)
        return True

    def on_served(self, process: ProcessId) -> None:
        """A member has the whole state, and has not asked again for a long time."""
        self._joining.pop(process, None)
