"""Logs what is wrong with peers, without a flood: a peer can repeat it.

Errors of our own that occurred in handling what a peer had sent are logged with a traceback. Of a process
whose group options differ, the options and both values are logged.
"""

import logging

from priocast.member import Member

_MISMATCHES_KEPT = 64

_log = logging.getLogger("priocast.member")
_group_log = logging.getLogger("priocast.group")


class FaultLog:
    """The log of one member: errors each time their count has doubled, and other options of a peer once.

    If more processes than a group is likely to have say ever new options, only doublings are logged as well.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._count = 0
        self._log_at = 1
        self._mismatches: dict[str, None] = {}
        self._mismatch_count = 0

    def take_from(self, member: Member) -> None:
        """Take the faults of a member, and log them."""
        while member.faults:
            peer, error = member.faults.popleft()
            self._count += 1
            if self._count < self._log_at:
                continue
            self._log_at = 2 * self._count
            fields = {"group": self._group, "member": member.me.name, "peer": peer.name, "count": self._count}
            _log.error(
                "%s: internal error in handling what %s sent (%d so far): %r",
                member.me.name,
                peer.name,
                self._count,
                error,
                exc_info=error,
                extra=fields,
            )

    def log_mismatches(self, member: Member) -> None:
        """Log whose group options differ; a member that is in no view yet fails because of it instead."""
        if member.view is None:
            return
        for mismatch in member.membership.mismatches.texts():
            if mismatch in self._mismatches:
                continue
            self._mismatches[mismatch] = None
            if len(self._mismatches) > _MISMATCHES_KEPT:
                del self._mismatches[next(iter(self._mismatches))]
            self._mismatch_count += 1
            if self._mismatch_count <= _MISMATCHES_KEPT or self._mismatch_count.bit_count() == 1:
                fields = {"group": self._group, "member": str(member.me), "reason": mismatch}
                _group_log.warning("rejected: %s", mismatch, extra=fields)
