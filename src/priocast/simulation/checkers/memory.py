"""Bounded memory: what a member keeps for others is bounded, and is discarded when nobody needs it.

A member keeps the packets of its view that are not stable. No more is ordered than the window admits before
everybody has consumed it, and what was consumed was received. Members report what they have received at
least every mebibyte. So the bound is a window, a frame and some mebibytes. Where members send messages to
all before these are ordered, limited by their credit only, the credit of all members adds to it. At rest
nothing is kept.
"""

from collections.abc import Callable, Iterable

from priocast.core.guarantees import BOUNDED_MEMORY
from priocast.core.protocol import OrderingOptions
from priocast.core.protocol_interface import Protocol
from priocast.member import Member
from priocast.protocols.flow.paced import PacedProtocol
from priocast.simulation.checkers.checker import Checker, ReportViolation

_UNREPORTED_BYTES = 4 * 1024 * 1024


class BoundedMemory(Checker):
    """Looks at every member after each of its turns; `members` are those that run at the end."""

    GUARANTEE = BOUNDED_MEMORY

    def __init__(
        self,
        report: ReportViolation,
        options: OrderingOptions,
        members: Callable[[], Iterable[Member]],
    ) -> None:
        super().__init__(report)
        self._options = options
        self._members = members

    def after_turn(self, member: Member, now: int) -> None:
        """A member has had a turn."""
        epoch = member.epoch
        if epoch is None:
            return
        bytes_max = self._options.window_bytes + _UNREPORTED_BYTES
        if _sends_ahead(epoch.protocol):
            bytes_max += len(epoch.view.members) * self._options.submit_bytes_max
        kept = epoch.stability.unstable_bytes
        if kept > bytes_max:
            summary = f"{member.me} keeps {kept:,} bytes for others; the bound is {bytes_max:,}"
            self.violated(summary, now, members=[str(member.me)])

    def finish(self, now: int) -> None:
        for member in self._members():
            epoch = member.epoch
            assert epoch is not None, "a member that runs at the end is in a view"
            if epoch.stability.unstable_bytes:
                summary = f"{member.me} still keeps {epoch.stability.unstable_bytes:,} bytes that are stable"
                self.violated(summary, now, members=[str(member.me)])


def _sends_ahead(protocol: Protocol) -> bool:
    """Whether messages are sent to all before they are ordered, and the window does not hold them back."""
    ahead = any(
        packet.TO_ALL and "batches" in packet.__struct_fields__ and "position" not in packet.__struct_fields__
        for packet in protocol.PACKETS
    )
    return ahead and not isinstance(protocol, PacedProtocol)
