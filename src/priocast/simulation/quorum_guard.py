"""Which crashes a group can survive.

A primary group continues as long as a quorum of its last view is alive; a new incarnation of a process is
another process. If more processes crash, the group correctly stops for ever and nothing is left to check. So
a crash that would leave no quorum does not happen. The last view may be one that is being agreed on: a member
that has promised to follow a round is in the view that follows, even if it crashes before it is asked again,
and members that leave or are evicted with this view can no longer make up for it.

In a partitionable group any remaining member continues; only the last one that is in a view does not crash,
because too few processes may be left to found the group.
"""

from collections.abc import Iterable

from priocast.core.view import View
from priocast.member import Member
from priocast.membership.quorum import is_quorum


class QuorumGuard:
    """Knows every view that was ever proposed: a proposal in flight may still be decided."""

    def __init__(self) -> None:
        self._proposed: list[View] = []

    def observe(self, member: Member) -> None:
        """A member has had a turn."""
        round_, accepted = member.membership.proposer.round, member.membership.voter.accepted
        for proposal in (round_.proposal if round_ else None, accepted):
            if proposal is not None and proposal.view not in self._proposed[-8:]:
                self._proposed.append(proposal.view)

    def can_crash(self, victim: Member, members: Iterable[Member]) -> bool:
        """Whether a primary group can continue without this member.

        The other members that stay need a quorum of the newest view that one of them is in, and of each view
        that may be the next one: it was proposed, or one of the others has asked for votes on it.
        """
        others = [member for member in members if member is not victim]
        left = [member for member in others if stays(member)]
        alive = {member.me for member in left}
        views = [member.view for member in left if member.view is not None]
        newest = max((view.number for view in views), default=0)
        needed = [view.members for view in views if view.number == newest]
        needed += [view.members for view in self._proposed if view.number > newest]
        if not needed:
            return victim.view is None
        rounds = [member.membership.proposer.round for member in others]
        needed += [round_.members for round_ in rounds if round_ is not None and round_.proposal is None]
        return all(is_quorum(each, alive) for each in needed)


def stays(member: Member) -> bool:
    """Whether a member is in the group, or is joining it, and does not want to leave it."""
    return member.departed is None and not member.membership.trigger.leaving


def has_state(member: Member) -> bool:
    """Whether a member is in a view and does not wait for its state."""
    return member.view is not None and not member.stream.awaits_state
