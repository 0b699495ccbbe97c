"""The content of a sealed datagram: frames for one peer, or fragments of bodies for one or several peers.

    FRAMES     incarnation | (channel sequence acknowledged selective length | body)…
    FRAGMENTS  incarnation | (headers length total offset transfer | link header… | part of a body)…
               link header: peer hash, channel sequence acknowledged selective
    RECEIVED   the highest counter that was received | a bit for each counter before it

A body that goes to several peers is the same for all; only the link headers differ. The transfer id is a new
number for each time that a body is sent in fragments.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from priocast.core.errors import Rejected
from priocast.links.frame import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.rejections import Reason
from priocast.network.replay_window import WINDOW_NUMBERS, ReplayWindow
from priocast.network.udp_security import SEAL_BYTES

_INCARNATION = struct.Struct("!Q")
_FRAME = struct.Struct("!QQQQH")
_BLOCK = struct.Struct("!BHIIQ")
_PEER = struct.Struct("!Q")
_LINK_HEADER = struct.Struct("!QQQQQ")  # the peer comes first
_REPORT = struct.Struct(f"!Q{WINDOW_NUMBERS // 8}s")
# Fragments start and end at multiples of this, so that fragments of different sizes fit together.
CELL_BYTES = 128


class LinkHeader(NamedTuple):
    """The header of a frame on the link to one peer."""

    peer: int
    channel: int
    sequence: int
    acknowledged: int
    selective: int


class Fragment(NamedTuple):
    """A part of a body of `total` bytes, with the link header for one peer."""

    header: LinkHeader
    transfer_id: int
    total: int
    offset: int
    body: bytes


class Sizes:
    """How much fits into one datagram."""

    def __init__(self, datagram_bytes: int) -> None:
        self.content = datagram_bytes - SEAL_BYTES - _INCARNATION.size
        self.frame_body = self.content - _FRAME.size
        self.headers = min(255, max(1, self.content // 2 // _LINK_HEADER.size))

    def whole(self, headers: int) -> int:
        """The size of the largest body that fits next to this number of link headers."""
        assert 1 <= headers <= self.headers
        return self.content - _BLOCK.size - headers * _LINK_HEADER.size

    def fragment(self, headers: int) -> int:
        """How many bytes of a larger body fit there."""
        return self.whole(headers) // CELL_BYTES * CELL_BYTES


def pack_frames(incarnation: int, frames: Iterable[Frame], sizes: Sizes) -> Iterator[bytes]:
    """Pack frames, each of which fits into one datagram, into as few contents as possible."""
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


def pack_fragment(
    headers: list[LinkHeader], transfer_id: int, body: bytes, offset: int, length: int
) -> bytes:
    """Encode one fragment of a body, as a part of a content."""
    block = _BLOCK.pack(len(headers), length, len(body), offset, transfer_id)
    return block + b"".join(_LINK_HEADER.pack(*header) for header in headers) + body[offset : offset + length]


def pack_fragments(incarnation: int, fragments: Iterable[bytes], sizes: Sizes) -> Iterator[bytes]:
    """Pack fragments, each of which fits into one datagram, into as few contents as possible."""
    parts, size = [_INCARNATION.pack(incarnation)], 0
    for fragment in fragments:
        if size + len(fragment) > sizes.content:
            yield b"".join(parts)
            parts, size = parts[:1], 0
        parts.append(fragment)
        size += len(fragment)
    if size:
        yield b"".join(parts)


def unpack_fragments(content: bytes, me: int) -> tuple[int, list[Fragment]]:
    """The incarnation of the sender, and the fragments that are for `me`."""
    fragments, own = [], _PEER.pack(me)
    try:
        [incarnation] = _INCARNATION.unpack_from(content)
        start = _INCARNATION.size
        while start < len(content):
            headers, length, total, offset, transfer_id = _BLOCK.unpack_from(content, start)
            _check_fragment(length, total, offset)
            start += _BLOCK.size
            body_start = start + headers * _LINK_HEADER.size
            body_stop = body_start + length
            if body_stop > len(content):
                raise Rejected(Reason.MALFORMED, "a fragment is longer than its datagram")
            for header_start in range(start, body_start, _LINK_HEADER.size):
                if content[header_start : header_start + len(own)] == own:
                    header = LinkHeader(*_LINK_HEADER.unpack_from(content, header_start))
                    fragments.append(
                        Fragment(header, transfer_id, total, offset, content[body_start:body_stop])
                    )
            start = body_stop
    except struct.error as error:
        raise Rejected(Reason.MALFORMED, str(error)) from error
    return incarnation, fragments


def pack_report(window: ReplayWindow) -> bytes:
    """Encode a report to the sender of fragments: which of its datagrams were received."""
    return _REPORT.pack(window.highest, window.seen.to_bytes(WINDOW_NUMBERS // 8))


def unpack_report(content: bytes) -> tuple[int, int]:
    """The highest counter that was received, and a bit for each counter before it."""
    if len(content) != _REPORT.size:
        raise Rejected(Reason.MALFORMED, f"{len(content)} bytes")
    highest, bits = _REPORT.unpack(content)
    return highest, int.from_bytes(bits)


def _check_fragment(length: int, total: int, offset: int) -> None:
    if total > FRAME_BYTES_MAX:
        raise Rejected(Reason.TOO_LONG, f"a body of {total:,} bytes in fragments")
    last = offset + length == total
    if offset + length > total or offset % CELL_BYTES or (length % CELL_BYTES and not last) or not length:
        raise Rejected(Reason.CONTRADICTORY, f"{length:,} bytes at {offset:,} of {total:,}")
