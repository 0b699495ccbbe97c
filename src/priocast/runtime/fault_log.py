"""Logs errors of our own that occurred in handling what a peer had sent: with a traceback, but no flood."""

import logging

from priocast.member import Member

_log = logging.getLogger("priocast.member")


class FaultLog:
    """The log of one member. A peer can repeat what caused an error: only doublings are logged."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._count = 0
        self._log_at = 1

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
