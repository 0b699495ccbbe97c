"""When a member sends stability reports: where others wait for them to deliver, or to free memory."""

from priocast.membership.epoch import Epoch
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import StabilityReport

_UNREPORTED_BYTES_MAX = 1024 * 1024


class StabilityReporter:
    """What one member has reported in its view, besides its heartbeats."""

    def __init__(self, options: MembershipOptions) -> None:
        self._delivery_waits = options.delivery == "safe" or not options.primary
        self._epoch: Epoch | None = None
        self._reported_packets = 0
        self._reported_bytes = 0

    def due(self, epoch: Epoch) -> StabilityReport | None:
        """The report to send now, if one is due."""
        if epoch is not self._epoch:
            self._epoch, self._reported_packets, self._reported_bytes = epoch, 0, 0
        stability = epoch.stability
        if stability.packets_total == self._reported_packets:
            return None
        unreported_bytes = stability.bytes_total - self._reported_bytes
        if unreported_bytes < _UNREPORTED_BYTES_MAX and not self.delivery_waits(epoch):
            return None
        self._reported_packets, self._reported_bytes = stability.packets_total, stability.bytes_total
        return StabilityReport(epoch.view.id, tuple(stability.received))

    def delivery_waits(self, epoch: Epoch) -> bool:
        """Whether some messages are delivered only once others have acknowledged them."""
        return self._delivery_waits or epoch.protocol.has_safe

    def is_complete(self, epoch: Epoch) -> bool:
        """Whether no ordered message waits for another member's report."""
        return not self.delivery_waits(epoch) or not epoch.stability.unstable_bytes
