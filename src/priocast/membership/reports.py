"""When to tell the others what one holds: where they wait for it, and where they could forget it."""

from priocast.membership.epoch import Epoch
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import Held

_BYTES_UNSAID_MAX = 1024 * 1024


class Reports:
    """What one member has told the others of what it holds, besides its signs of life."""

    def __init__(self, options: MembershipOptions) -> None:
        self._gated = options.delivery == "safe" or not options.primary
        self._said_count = 0
        self._said_bytes = 0

    def begin(self) -> None:
        """A new view: nothing has been told."""
        self._said_count = self._said_bytes = 0

    def due(self, epoch: Epoch) -> Held | None:
        """What to tell the others now."""
        retention = epoch.retention
        if retention.received == self._said_count:
            return None
        if retention.received_bytes - self._said_bytes < _BYTES_UNSAID_MAX and not (
            self._gated or epoch.protocol.has_safe
        ):
            return None
        self._said_count, self._said_bytes = retention.received, retention.received_bytes
        return Held(epoch.view.id, tuple(retention.held))

    def are_awaited(self, epoch: Epoch) -> bool:
        """Whether messages are delivered only when others are known to hold them."""
        return self._gated or epoch.protocol.has_safe

    def are_complete(self, epoch: Epoch) -> bool:
        """Whether no message that is ordered has to wait for another member's report."""
        return not self.are_awaited(epoch) or not epoch.retention.bytes
