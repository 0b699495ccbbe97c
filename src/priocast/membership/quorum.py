"""Quorums: who may decide for all members of a view."""

from collections.abc import Collection, Sequence

from priocast.core.identity import ProcessId


def is_quorum(members: Sequence[ProcessId], present: Collection[ProcessId]) -> bool:
    """Whether those present may decide for all members: more than half, or half including the first member.

    Any two quorums have a member in common, and a group of two survives the failure of its second member.
    """
    count = sum(member in present for member in members)
    return 2 * count > len(members) or (2 * count == len(members) and members[0] in present)
