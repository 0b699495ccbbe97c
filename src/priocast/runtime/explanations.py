"""What a timed-out or rejected call waited for, as text for its error message."""

from priocast.member import Member
from priocast.network.interface import Network


def why_not_joined(member: Member, network: Network, now: int) -> str:
    """Which processes of the group were heard, which addresses did not answer, and the last objection."""
    heard = [process.name for process in member.membership.neighbours.hears(now)]
    missing, objection = network.unreached(), member.membership.proposer.objection
    details = [f"heard: {', '.join(heard) or 'nobody'}"]
    if missing:
        details.append(f"missing: {', '.join(missing)}")
    if objection:
        details.append(objection)
    return "; ".join(details)


def why_full(member: Member, *, awaits_application: bool = False) -> str:
    """Why the queue of a member does not drain.

    `awaits_application`: the member was evicted, and its application has not asked for the next event.
    """
    name = member.me.name
    if awaits_application:
        reason = f"{name} was evicted, and rejoins when its application asks for the next event"
    elif member.view is None:
        reason = f"{name} is not in the group now and tries to rejoin"
    elif member.membership.trigger.suspended:
        reason = "no quorum of the group can be reached"
    else:
        reason = "the slowest member has not consumed earlier messages"
    return f"{member.backlog} messages wait at {name} for a position, because {reason}"
