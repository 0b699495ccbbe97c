"""Who keeps the group from making progress, and what a member does about it.

A member whose application is slow is evicted, and so is one that frames do not get through to. A member that
is on probation keeps what is ordered for its own application, and withdraws if that does not take it. So does
a new member of a partitionable group that nobody can give the state any more. What withdraws, rejoins with a
new incarnation.
"""

from priocast.core.view_reason import Eviction, EvictionCause
from priocast.membership.epoch import Epoch
from priocast.membership.membership import Membership
from priocast.membership.options import MembershipOptions
from priocast.membership.probation import Probation
from priocast.membership.slow_member import SlowMemberDetector
from priocast.membership.stability_reporter import StabilityReporter
from priocast.membership.stream import Stream
from priocast.membership.unacknowledged import UnacknowledgedDetector


class ProgressMonitor:
    """Watches the progress of one member's group; `probation` is None if this member is not on probation."""

    def __init__(
        self,
        options: MembershipOptions,
        membership: Membership,
        stream: Stream,
        reporter: StabilityReporter,
        on_probation: bool,
        now: int,
    ) -> None:
        self.slow_member = SlowMemberDetector(options.slow_ns, now)
        self.unacknowledged = UnacknowledgedDetector(options, now)
        self.probation = Probation(options.slow_ns, now) if on_probation else None
        self._membership = membership
        self._stream = stream
        self._reporter = reporter

    def on_tick(self, epoch: Epoch, now: int) -> None:
        """See whether the order waits for an application, another member's or this one's."""
        slow = self.slow_member.found(epoch.protocol, self._could_consume(epoch, now), now)
        if slow is not None and len(epoch.view.members) > 1:
            self._membership.evict(slow, "slow", now)
        if self._membership.state.has_lost_donors:
            self._withdraw("stateless", "no member is left that could give it the state", now)
        if self.probation is not None:
            self.catch_up(epoch, now)
            self._review(self.probation, now)

    def on_heartbeat(self, epoch: Epoch, now: int) -> None:
        """It is time for heartbeats: see whether frames get through to all members."""
        for peer in self.unacknowledged.on_tick(epoch, self._membership.neighbours, now):
            self._membership.evict(peer, "unacknowledged", now, "it is heard, frames do not get through")

    def catch_up(self, epoch: Epoch, now: int) -> None:
        """Keep what is ordered; where queued messages can be overtaken, nobody waits for that."""
        if self._stream.awaits_state or epoch.protocol.PRIORITIES_ACT != "consuming":
            self._stream.catch_up(epoch, now)

    def _review(self, probation: Probation, now: int) -> None:
        """End the probation if the application keeps up; withdraw if it does not consume."""
        if probation.has_failed(self._stream, now):
            self._withdraw("slow", "on probation, its application did not consume", now)
        elif probation.is_over(self._stream, now):
            self.probation = None

    def _withdraw(self, cause: EvictionCause, detail: str, now: int) -> None:
        """Leave as if this member had been evicted, unless it leaves already."""
        membership = self._membership
        if not membership.trigger.leaving:
            membership.leave(now, Eviction(membership.me.name, cause, detail))

    def _could_consume(self, epoch: Epoch, now: int) -> bool:
        """Whether only its application can keep a member from consuming, and no state is in transfer."""
        trusted = all(self._membership.neighbours.trusts(peer, now) for peer in epoch.links)
        transferring = self._stream.awaits_state or self._membership.state.is_asked(now)
        acknowledged = not self.unacknowledged.late()
        return trusted and acknowledged and not transferring and self._reporter.is_complete(epoch)
