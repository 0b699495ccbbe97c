"""Departure: a member that is not in the next view stays until the others know of that view.

It may be the only one to know that the view was decided, and without it the others may be too few to find
out. So it says it again until all of them are there, or until it has waited long enough.
"""

from priocast.core.identity import ProcessId
from priocast.membership.neighbours import Neighbours
from priocast.membership.packets import Install

_FAILURE_TIMEOUTS = 4


class Departure:
    """What a member that goes has to see to."""

    def __init__(self, install: Install, failure_ns: int, now: int) -> None:
        self.install = install
        self._until = now + _FAILURE_TIMEOUTS * failure_ns

    def missing(self, neighbours: Neighbours, now: int) -> list[ProcessId]:
        """The members of the next view that are not known to be in it, as far as they are alive."""
        view = self.install.proposal.view
        return [
            member
            for member in view.members
            if neighbours.trusts(member, now)
            and ((told := neighbours.view_of(member)) is None or told.number < view.number)
        ]

    def is_over(self, neighbours: Neighbours, now: int) -> bool:
        """Whether there is nothing left to see to: who leaves, too, needs no view."""
        missing = self.missing(neighbours, now)
        return now >= self._until or all(map(neighbours.is_leaving, missing))
