"""Puts bodies together again that came in pieces, in bounded memory and time.

A body is known by what its link calls it: when the link sends it again, the new pieces fill the gaps that
the old ones left, so a large body arrives even if some of its pieces are lost each time. Pieces that come
late, of a body that is whole already, are known by their mark. Where one too many is begun, the one that has
waited longest for a piece is given up: first of the same sender, so that none can push out what others send.
"""

from typing import NamedTuple

from priocast.core.errors import Rejected
from priocast.links.fifo_link import Frame
from priocast.network.rejections import Reason, Rejections
from priocast.network.udp_content import CELL_BYTES, Piece, Row

PARTIAL_BYTES_MAX = 64 * 1024 * 1024
PARTIAL_BYTES_OF_ONE_MAX = 8 * 1024 * 1024
_PARTIAL_COST_BYTES = 1024  # what a partial body takes beyond its bytes, so that small ones are counted too
_PATIENCE_SECONDS = 10.0
_WHOLE_MAX = 1024


class _Key(NamedTuple):
    sender: bytes
    incarnation: int
    channel: int
    sequence: int
    mark: int


class _Partial:
    """A body of which some cells have come."""

    def __init__(self, total: int) -> None:
        self.body = bytearray(total)
        self.cells = 0
        self.cells_all = (1 << -(-total // CELL_BYTES)) - 1
        self.cost = total + _PARTIAL_COST_BYTES
        self.touched_at = 0.0

    def add(self, piece: Piece, now: float) -> bool:
        """Fill in a piece; return whether the body is whole."""
        if piece.total != len(self.body):
            raise Rejected(Reason.CONTRADICTORY, f"a body of {len(self.body):,} and of {piece.total:,} bytes")
        self.body[piece.offset : piece.offset + len(piece.body)] = piece.body
        count = -(-len(piece.body) // CELL_BYTES)
        self.cells |= ((1 << count) - 1) << (piece.offset // CELL_BYTES)
        self.touched_at = now
        return self.cells == self.cells_all


class Reassembly:
    """The bodies that are not whole yet, of all senders of a process; the one touched last is the last."""

    def __init__(self, gate: Rejections) -> None:
        self._gate = gate
        self._partials: dict[_Key, _Partial] = {}
        self._cost = 0
        self._cost_of: dict[bytes, int] = {}
        self._whole: dict[tuple[bytes, int, int, Row], None] = {}

    def __len__(self) -> int:
        return len(self._partials)

    def add(self, sender: bytes, incarnation: int, piece: Piece, now: float) -> Frame | None:
        """Take a piece from a sender; return the frame that is whole with it, if one is."""
        row = piece.row
        if len(piece.body) == piece.total:
            return Frame(row.channel, row.sequence, row.acknowledged, row.selective, piece.body)
        if self.is_whole(sender, incarnation, piece):
            return None
        key = _Key(sender, incarnation, row.channel, row.sequence, 0 if row.sequence else piece.mark)
        partial = self._partials.pop(key, None)
        if partial is None:
            partial = _Partial(piece.total)
            self._make_room(sender, partial.cost)
        else:
            self._account(sender, -partial.cost)
        if partial.add(piece, now):
            self._whole[sender, incarnation, piece.mark, row] = None
            if len(self._whole) > _WHOLE_MAX:
                del self._whole[next(iter(self._whole))]
            return Frame(row.channel, row.sequence, row.acknowledged, row.selective, bytes(partial.body))
        self._partials[key] = partial
        self._account(sender, partial.cost)
        return None

    def is_whole(self, sender: bytes, incarnation: int, piece: Piece) -> bool:
        """Whether the body that this is a piece of has become whole."""
        return (sender, incarnation, piece.mark, piece.row) in self._whole

    def expire(self, now: float) -> None:
        """Give up what has waited too long."""
        while self._partials:
            key, partial = next(iter(self._partials.items()))
            if now - partial.touched_at < _PATIENCE_SECONDS:
                break
            self._give_up(key)

    def _make_room(self, sender: bytes, cost: int) -> None:
        while self._cost_of.get(sender, 0) + cost > PARTIAL_BYTES_OF_ONE_MAX:
            self._give_up(next(key for key in self._partials if key.sender == sender))
        while self._cost + cost > PARTIAL_BYTES_MAX:
            self._give_up(next(iter(self._partials)))

    def _give_up(self, key: _Key) -> None:
        self._account(key.sender, -self._partials.pop(key).cost)
        self._gate.note(Reason.GIVEN_UP)

    def _account(self, sender: bytes, cost: int) -> None:
        self._cost += cost
        total = self._cost_of.pop(sender, 0) + cost
        if total:
            self._cost_of[sender] = total
