"""Bounded memory: what a member keeps for others stays within a bound, and is gone when nobody needs it.

A member keeps the packets of its view that not everybody is known to hold. No more is ordered than the window
lets in before everybody has consumed it, and what was consumed was held; members say at least every mebibyte
how much they hold. So a window, a frame and some mebibytes are the bound; where members send messages to all
that have no place yet, and are held back by their credit only, all of that credit comes on top of it. At rest
nothing is kept at all.
"""

from collections.abc import Callable, Iterable

from priocast.core.protocol import OrderingOptions, Protocol
from priocast.member import Member
from priocast.protocols.flow.paced import PacedProtocol
from priocast.simulation.checkers.checker import Checker, Report

_UNSAID_BYTES = 4 * 1024 * 1024


class BoundedMemory(Checker):
    """Looks at every member after each of its turns; `members` are those that are there in the end."""

    PROPERTY = "Bounded memory"

    def __init__(
        self, report: Report, options: OrderingOptions, members: Callable[[], Iterable[Member]]
    ) -> None:
        super().__init__(report)
        self._options = options
        self._members = members

    def look_at(self, member: Member, now: int) -> None:
        """A member has had a turn."""
        epoch = member.epoch
        if epoch is None:
            return
        bytes_max = self._options.window_bytes + _UNSAID_BYTES
        if _sends_ahead(epoch.protocol):
            bytes_max += len(epoch.view.members) * self._options.submit_bytes_max
        if epoch.stability.unstable_bytes > bytes_max:
            text = (
                f"{member.me} keeps {epoch.stability.unstable_bytes:,} bytes for others, {bytes_max:,} may be"
            )
            self.violated(text, now, members=[str(member.me)])

    def finish(self, now: int) -> None:
        for member in self._members():
            epoch = member.epoch
            assert epoch is not None, "who is there in the end is in a view"
            if epoch.stability.unstable_bytes:
                text = (
                    f"{member.me} still keeps {epoch.stability.unstable_bytes:,} bytes that everybody holds"
                )
                self.violated(text, now, members=[str(member.me)])


def _sends_ahead(protocol: Protocol) -> bool:
    """Whether messages go to all before they have a place, and the window does not hold them back."""
    ahead = any(
        packet.TO_ALL and "batches" in packet.__struct_fields__ and "position" not in packet.__struct_fields__
        for packet in protocol.PACKETS
    )
    return ahead and not isinstance(protocol, PacedProtocol)
