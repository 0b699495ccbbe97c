"""Reassembles bodies that arrive in fragments, in bounded memory and time.

A body is identified by its link's sequence number: when the link retransmits it, the new fragments fill the
gaps, so a large body arrives even if some fragments are lost each time. Late fragments of a body that is
complete already are recognised by their transfer id. If there are too many incomplete bodies, the one that
has waited longest for a fragment is discarded: first of the same sender, so that no sender can displace the
bodies of others.
"""

from typing import NamedTuple

from priocast.core.errors import Rejected
from priocast.links.frame import Frame
from priocast.network.rejections import Reason, RejectionLog
from priocast.network.udp_content import CELL_BYTES, Fragment, LinkHeader

PARTIAL_BYTES_MAX = 64 * 1024 * 1024
PARTIAL_BYTES_OF_ONE_MAX = 8 * 1024 * 1024
_PARTIAL_COST_BYTES = 1024  # memory of a partial body besides its bytes, so that small ones count too
_TIMEOUT_SECONDS = 10.0
_WHOLE_MAX = 1024


class _Key(NamedTuple):
    sender: bytes
    incarnation: int
    channel: int
    sequence: int
    transfer_id: int


class _Partial:
    """A body of which some cells have arrived."""

    def __init__(self, total: int) -> None:
        self.body = bytearray(total)
        self.cells = 0
        self.cells_all = (1 << -(-total // CELL_BYTES)) - 1
        self.cost = total + _PARTIAL_COST_BYTES
        self.touched_at = 0.0

    def add(self, fragment: Fragment, now: float) -> bool:
        """Fill in a fragment; return whether the body is complete."""
        if fragment.total != len(self.body):
            raise Rejected(Reason.CONTRADICTORY, f"a body of {len(self.body):,} or {fragment.total:,} bytes")
        self.body[fragment.offset : fragment.offset + len(fragment.body)] = fragment.body
        count = -(-len(fragment.body) // CELL_BYTES)
        self.cells |= ((1 << count) - 1) << (fragment.offset // CELL_BYTES)
        self.touched_at = now
        return self.cells == self.cells_all


class Reassembly:
    """The incomplete bodies of all senders, the most recently updated one last."""

    def __init__(self, rejection_log: RejectionLog) -> None:
        self._rejection_log = rejection_log
        self._partials: dict[_Key, _Partial] = {}
        self._cost = 0
        self._cost_of: dict[bytes, int] = {}
        self._whole: dict[tuple[bytes, int, int, LinkHeader], None] = {}

    def __len__(self) -> int:
        return len(self._partials)

    def add(self, sender: bytes, incarnation: int, fragment: Fragment, now: float) -> Frame | None:
        """Add a fragment; return the frame that it completes, if any."""
        header = fragment.header
        if len(fragment.body) == fragment.total:
            return Frame(
                header.channel, header.sequence, header.acknowledged, header.selective, fragment.body
            )
        if self.is_whole(sender, incarnation, fragment):
            return None
        key = _Key(
            sender,
            incarnation,
            header.channel,
            header.sequence,
            0 if header.sequence else fragment.transfer_id,
        )
        partial = self._partials.pop(key, None)
        if partial is None:
            partial = _Partial(fragment.total)
            self._make_room(sender, partial.cost)
        else:
            self._account(sender, -partial.cost)
        if partial.add(fragment, now):
            self._whole[sender, incarnation, fragment.transfer_id, header] = None
            if len(self._whole) > _WHOLE_MAX:
                del self._whole[next(iter(self._whole))]
            return Frame(
                header.channel, header.sequence, header.acknowledged, header.selective, bytes(partial.body)
            )
        self._partials[key] = partial
        self._account(sender, partial.cost)
        return None

    def is_whole(self, sender: bytes, incarnation: int, fragment: Fragment) -> bool:
        """Whether the body of this fragment is complete."""
        return (sender, incarnation, fragment.transfer_id, fragment.header) in self._whole

    def expire(self, now: float) -> None:
        """Discard bodies that have waited too long for a fragment."""
        while self._partials:
            key, partial = next(iter(self._partials.items()))
            if now - partial.touched_at < _TIMEOUT_SECONDS:
                break
            self._discard(key)

    def _make_room(self, sender: bytes, cost: int) -> None:
        while self._cost_of.get(sender, 0) + cost > PARTIAL_BYTES_OF_ONE_MAX:
            self._discard(next(key for key in self._partials if key.sender == sender))
        while self._cost + cost > PARTIAL_BYTES_MAX:
            self._discard(next(iter(self._partials)))

    def _discard(self, key: _Key) -> None:
        self._account(key.sender, -self._partials.pop(key).cost)
        self._rejection_log.record(Reason.INCOMPLETE)

    def _account(self, sender: bytes, cost: int) -> None:
        self._cost += cost
        total = self._cost_of.pop(sender, 0) + cost
        if total:
            self._cost_of[sender] = total
