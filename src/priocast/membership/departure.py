"""Departure: a member that is not in the next view stays until the others know of that view.

It may be the only one that knows the decision, and without it the others may be too few to find out. So it
repeats the decision until all of them have installed the view, or until it has waited long enough.
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.neighbours import Neighbours
from priocast.membership.packets import Install, Proposal

_FAILURE_TIMEOUTS = 4


class Departed(msgspec.Struct, frozen=True):
    """A member is no longer in the group: whether it wanted to leave, and the reason of the next view."""

    voluntary: bool
    reason: ViewReason

    def __str__(self) -> str:
        return str(self.reason) if self.voluntary else f"evicted: {self.reason}"


class Departure:
    """The decision on a view without this member, and until when this member repeats it."""

    def __init__(self, install: Install, failure_ns: int, now: int) -> None:
        self.install = install
        self._until = now + _FAILURE_TIMEOUTS * failure_ns

    def uninformed(self, neighbours: Neighbours, now: int) -> list[ProcessId]:
        """The members of the next view that are alive and not known to be in it; none: this one departs.

        If all of them leave as well, none of them needs the view.
        """
        view = self.install.proposal.view
        uninformed = [
            member
            for member in view.members
            if neighbours.trusts(member, now)
            and ((current := neighbours.view_of(member)) is None or current.number < view.number)
        ]
        is_over = now >= self._until or all(map(neighbours.is_leaving, uninformed))
        return [] if is_over else uninformed


def departing(view: View | None, proposal: Proposal, primary: bool) -> list[ProcessId]:
    """The members that depart with an old view: in a primary group, all that are not in the next one."""
    if view is None:
        return []
    plan = proposal.flush_plan_of(view.id)
    ended = view.members if primary or plan is None else plan.members
    staying = frozenset(proposal.view.members)
    return [process for process in ended if process not in staying]
