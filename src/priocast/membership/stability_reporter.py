"""When a member sends stability reports: where others wait for them to deliver, or to free memory."""

from priocast.membership.epoch import Epoch
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import StabilityReport

_UNREPORTED_BYTES_MAX = 2 * 1024 * 1024 - 1


class StabilityReporter:
    """When a member reports what it has received, besides its heartbeats.

    A report is due when more than `unreported_bytes_max` are not reported; at once, if delivery waits for it.
    """

    def __init__(self, options: MembershipOptions) -> None:
        self._delivery_waits = options.delivery == "safe" or not options.primary
        self.unreported_bytes_max = 0 if self._delivery_waits else _UNREPORTED_BYTES_MAX

    def due(self, epoch: Epoch) -> StabilityReport | None:
        """The report to send now, if one is due."""
        unreported_bytes_max = 0 if epoch.protocol.has_safe else self.unreported_bytes_max
        if epoch.stability.unreported_bytes <= unreported_bytes_max:
            return None
        epoch.stability.unreported_bytes = 0
        return StabilityReport(epoch.view.id, tuple(epoch.stability.received))

    def is_complete(self, epoch: Epoch) -> bool:
        """Whether no ordered message waits for another member's report."""
        epoch.stability.forget_stable()
        return not (self._delivery_waits or epoch.protocol.has_safe) or not epoch.stability.unstable_bytes
