"""Which crashes a group can survive.

A primary group goes on as long as a quorum of its last view lives on; a new life of a process is another
process. If more of them crash the group rightly stops for ever, and there would be nothing left to check. So
a crash that is one too many does not happen. In a partitionable group whoever is left goes on.
"""

from collections.abc import Iterable

from priocast.core.view import View
from priocast.member import Member
from priocast.membership.quorum import is_quorum


class QuorumGuard:
    """Knows every view that was ever proposed: one that is still on its way may yet be decided."""

    def __init__(self) -> None:
        self._proposed: list[View] = []

    def look_at(self, member: Member) -> None:
        """A member has had a turn."""
        round_, accepted = member.membership.proposer.round, member.membership.voter.accepted
        for proposal in (round_.proposal if round_ else None, accepted):
            if proposal is not None and proposal.view not in self._proposed[-8:]:
                self._proposed.append(proposal.view)

    def is_possible(self, victim: Member, members: Iterable[Member]) -> bool:
        """Whether a primary group can go on without this member, with those of all these who stay.

        They need a quorum of the newest view that one of them is in, and of each that may be the next one.
        """
        left = [member for member in members if member is not victim and stays(member)]
        alive = {member.me for member in left}
        views = [member.view for member in left if member.view is not None]
        newest = max((view.number for view in views), default=0)
        needed = [view for view in views if view.number == newest]
        needed += [view for view in self._proposed if view.number > newest]
        if not needed:
            return victim.view is None
        return all(is_quorum(view.members, alive) for view in needed)


def stays(member: Member) -> bool:
    """Whether a member is in the group, or wants to be, and does not want to leave it."""
    return member.departed is None and not member.membership.trigger.leaving


def knows_the_state(member: Member) -> bool:
    """Whether a member is in a view and does not wait for its state."""
    return member.view is not None and not member.stream.awaits_state
