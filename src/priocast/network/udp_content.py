"""What the sealed part of a datagram says: whole frames for one peer, or pieces of bodies for one or several.

    FRAMES  incarnation | (channel sequence acknowledged selective length | body)…
    PIECES  incarnation | (rows length total offset mark | row… | piece of a body)…
            row: peer hash, channel sequence acknowledged selective
    SEEN    the highest counter that was seen | a bit for each before it

A body that goes to several peers is the same for all; only what their links say differs, a row for each. The
mark is a number that the sender gives to each body that it sends in pieces, each time that it does.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from priocast.core.errors import Rejected
from priocast.links.fifo_link import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.rejections import Reason
from priocast.network.replay_window import WINDOW_NUMBERS, ReplayWindow
from priocast.network.udp_security import SEAL_BYTES

_INCARNATION = struct.Struct("!Q")
_FRAME = struct.Struct("!QQQQH")
_BLOCK = struct.Struct("!BHIIQ")
_ROW = struct.Struct("!QQQQQ")
_SEEN = struct.Struct(f"!Q{WINDOW_NUMBERS // 8}s")
# Pieces begin and end at these, so that pieces of several sizes fit together.
CELL_BYTES = 128


class Row(NamedTuple):
    """What the link to one peer says with a body."""

    peer: int
    channel: int
    sequence: int
    acknowledged: int
    selective: int


class Piece(NamedTuple):
    """A part of a body of `total` bytes, as one peer is to take it."""

    row: Row
    mark: int
    total: int
    offset: int
    body: bytes


class Sizes:
    """How much goes into one datagram."""

    def __init__(self, datagram_bytes: int) -> None:
        self.content = datagram_bytes - SEAL_BYTES - _INCARNATION.size
        self.frame_body = self.content - _FRAME.size
        self.rows = min(255, max(1, self.content // 2 // _ROW.size))

    def piece(self, rows: int) -> int:
        """How many bytes of a body fit next to so many rows."""
        assert 1 <= rows <= self.rows
        return (self.content - _BLOCK.size - rows * _ROW.size) // CELL_BYTES * CELL_BYTES


def pack_frames(incarnation: int, frames: Iterable[Frame], sizes: Sizes) -> Iterator[bytes]:
    """As few contents as hold these frames, each of which fits into one."""
    parts, size = [_INCARNATION.pack(incarnation)], 0
    for frame in frames:
        needed = _FRAME.size + len(frame.body)
        if size + needed > sizes.content:
            yield b"".join(parts)
            parts, size = parts[:1], 0
        parts.append(
            _FRAME.pack(frame.channel, frame.sequence, frame.acknowledged, frame.selective, len(frame.body))
        )
        parts.append(frame.body)
        size += needed
    if size:
        yield b"".join(parts)


def unpack_frames(content: bytes) -> tuple[int, list[Frame]]:
    """The incarnation of the sender, and its frames."""
    frames = []
    try:
        [incarnation] = _INCARNATION.unpack_from(content)
        start = _INCARNATION.size
        while start < len(content):
            channel, sequence, acknowledged, selective, length = _FRAME.unpack_from(content, start)
            start += _FRAME.size + length
            frames.append(Frame(channel, sequence, acknowledged, selective, content[start - length : start]))
    except struct.error as error:
        raise Rejected(Reason.MALFORMED, str(error)) from error
    if start != len(content):
        raise Rejected(Reason.MALFORMED, "a frame is longer than its datagram")
    return incarnation, frames


def pack_piece(rows: list[Row], mark: int, body: bytes, offset: int, length: int) -> bytes:
    """One piece of a body, as a part of a content."""
    header = _BLOCK.pack(len(rows), length, len(body), offset, mark)
    return header + b"".join(_ROW.pack(*row) for row in rows) + body[offset : offset + length]


def pack_pieces(incarnation: int, pieces: Iterable[bytes], sizes: Sizes) -> Iterator[bytes]:
    """As few contents as hold these pieces, each of which fits into one."""
    parts, size = [_INCARNATION.pack(incarnation)], 0
    for piece in pieces:
        if size + len(piece) > sizes.content:
            yield b"".join(parts)
            parts, size = parts[:1], 0
        parts.append(piece)
        size += len(piece)
    if size:
        yield b"".join(parts)


def unpack_pieces(content: bytes, me: int) -> tuple[int, list[Piece]]:
    """The incarnation of the sender, and the pieces that are for `me`."""
    pieces = []
    try:
        [incarnation] = _INCARNATION.unpack_from(content)
        start = _INCARNATION.size
        while start < len(content):
            rows, length, total, offset, mark = _BLOCK.unpack_from(content, start)
            _check_piece(length, total, offset)
            start += _BLOCK.size
            body_start = start + rows * _ROW.size
            body_stop = body_start + length
            if body_stop > len(content):
                raise Rejected(Reason.MALFORMED, "a piece is longer than its datagram")
            for row_start in range(start, body_start, _ROW.size):
                row = Row(*_ROW.unpack_from(content, row_start))
                if row.peer == me:
                    pieces.append(Piece(row, mark, total, offset, content[body_start:body_stop]))
            start = body_stop
    except struct.error as error:
        raise Rejected(Reason.MALFORMED, str(error)) from error
    return incarnation, pieces


def pack_seen(window: ReplayWindow) -> bytes:
    """A word to whoever sends pieces: which of its datagrams were seen."""
    return _SEEN.pack(window.highest, window.seen.to_bytes(WINDOW_NUMBERS // 8))


def unpack_seen(content: bytes) -> tuple[int, int]:
    """The highest counter that was seen, and bits for those before it."""
    if len(content) != _SEEN.size:
        raise Rejected(Reason.MALFORMED, f"{len(content)} bytes")
    highest, bits = _SEEN.unpack(content)
    return highest, int.from_bytes(bits)


def _check_piece(length: int, total: int, offset: int) -> None:
    if total > FRAME_BYTES_MAX:
        raise Rejected(Reason.TOO_LONG, f"a body of {total:,} bytes in pieces")
    last = offset + length == total
    if offset + length > total or offset % CELL_BYTES or (length % CELL_BYTES and not last) or not length:
        raise Rejected(Reason.CONTRADICTORY, f"{length:,} bytes at {offset:,} of {total:,}")
