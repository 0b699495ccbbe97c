"""What the next view should be, as one process sees it: by whom it hears and what was asked for."""

from collections.abc import Callable, Sequence

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.quorum import best_clique, is_quorum

_Value = Callable[[list[ProcessId]], tuple[int, ...]]


class TargetView(msgspec.Struct, frozen=True):
    """The processes that shall vote, the first of which shall propose, and those that shall be the view.

    Who leaves, or is put out, votes but is not in the view.
    """

    voters: tuple[ProcessId, ...]
    members: tuple[ProcessId, ...]


class TargetViewPlanner:
    """Forms the wish of one process.

    `may_found` is lost, in a primary group, by whoever has heard of a view: there must not be two first ones.
    """

    def __init__(self, me: ProcessId, options: MembershipOptions, neighbours: Neighbours) -> None:
        self._me = me
        self._options = options
        self._neighbours = neighbours
        self.leaving = False
        self.may_found = True
        self.evicted: dict[ProcessId, str] = {}

    def form(self, view: View | None, waited_ns: int, now: int) -> TargetView | None:
        """What this process wants now; None if there is nothing that it could want."""
        present = [self._me, *self._neighbours.trusted(now)]
        present = [process for process in present if not self._neighbours.avoids(process, now)]
        if view is None:
            return self._to_begin(present, waited_ns)
        if self._options.primary:
            return self._to_go_on(view, present)
        present = [one for one in present if not self._neighbours.is_bound_elsewhere(one, now)]
        return self._to_go_on_or_merge(view, present)

    def goes(self, process: ProcessId) -> bool:
        """Whether a process is to leave the group, by its own will or not."""
        if process in self.evicted:
            return True
        return self.leaving if process == self._me else self._neighbours.is_leaving(process)

    def _to_begin(self, present: list[ProcessId], waited_ns: int) -> TargetView | None:
        """Found the group; but if there is one already, wait to be taken in."""
        founders = self._options.founders
        if self.leaving or not self.may_found or any(self._view_of(process) for process in present):
            return None
        there = sorted(process for process in present if not self.goes(process))
        clique = self._clique(there, lambda found: (self._me in found, len(found)))
        patient = self._options.primary or waited_ns < 2 * self._options.failure_ns
        if len(clique) < founders and patient:
            return None
        chosen = clique[:founders]
        return _wish(chosen, self) if self._me in chosen else None

    def _to_go_on(self, view: View, present: list[ProcessId]) -> TargetView | None:
        """The majority of the view, and those who want to join it."""
        survivors = [member for member in view.members if member in present]
        joiners = [process for process in present if process not in survivors and not self._view_of(process)]
        clique = self._clique(
            survivors + sorted(joiners),
            lambda found: (
                is_quorum(view.members, found),
                self._me in found,
                sum(process in survivors for process in found),
                len(found),
            ),
        )
        if not is_quorum(view.members, clique) or self._me not in clique:
            return None
        return _wish(clique, self, view)

    def _to_go_on_or_merge(self, view: View, present: list[ProcessId]) -> TargetView | None:
        """Everybody who can be reached: the view's members first, then those of other views."""
        survivors = [member for member in view.members if member in present]
        parts: dict[ViewId | None, list[ProcessId]] = {view.id: survivors}
        for process in present:
            if process not in view.members:
                parts.setdefault(self._view_of(process), []).append(process)
        strangers = parts.pop(None, [])
        by_size = sorted(parts.items(), key=lambda part: (-len(part[1]), part[0]))
        order = [process for _, part in by_size for process in part] + strangers
        clique = self._clique(
            order,
            lambda found: (self._me in found, sum(member in found for member in survivors), len(found)),
        )
        return _wish(clique, self, view)

    def _clique(self, processes: Sequence[ProcessId], value: _Value) -> list[ProcessId]:
        return best_clique(processes[:MEMBERS_MAX], self._neighbours.linked, value)

    def _view_of(self, process: ProcessId) -> ViewId | None:
        return None if process == self._me else self._neighbours.view_of(process)


def _wish(voters: list[ProcessId], wishes: TargetViewPlanner, view: View | None = None) -> TargetView | None:
    """Leave out those who go; but somebody of the present view, who has its state, must be in the next."""
    members = tuple(process for process in voters if not wishes.goes(process))
    if members and view is not None and not any(member in view.members for member in members):
        members = tuple(voters)
        wishes.evicted.clear()
    return TargetView(tuple(voters), members) if members else None
