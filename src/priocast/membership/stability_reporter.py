"""When to tell the others what one holds: where they wait for it, and where they could forget it."""

from priocast.membership.epoch import Epoch
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import StabilityReport

_BYTES_UNSAID_MAX = 1024 * 1024


class StabilityReporter:
    """What one member has told the others of what it holds, besides its signs of life."""

    def __init__(self, options: MembershipOptions) -> None:
        self._gated = options.delivery == "safe" or not options.primary
        self._said_count = 0
        self._said_bytes = 0

    def begin(self) -> None:
        """A new view: nothing has been told."""
        self._said_count = self._said_bytes = 0

    def due(self, epoch: Epoch) -> StabilityReport | None:
        """What to tell the others now."""
        stability = epoch.stability
        if stability.packets_total == self._said_count:
            return None
        if stability.bytes_total - self._said_bytes < _BYTES_UNSAID_MAX and not (
            self._gated or epoch.protocol.has_safe
        ):
            return None
        self._said_count, self._said_bytes = stability.packets_total, stability.bytes_total
        return StabilityReport(epoch.view.id, tuple(stability.received))

    def are_awaited(self, epoch: Epoch) -> bool:
        """Whether messages are delivered only when others are known to hold them."""
        return self._gated or epoch.protocol.has_safe

    def are_complete(self, epoch: Epoch) -> bool:
        """Whether no message that is ordered has to wait for another member's report."""
        return not self.are_awaited(epoch) or not epoch.stability.unstable_bytes
