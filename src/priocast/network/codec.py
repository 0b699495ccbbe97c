"""Frames as bytes: a fixed header that is checked first, then the body.

    0       2         3      4            12            20            28
    | magic | version | kind | group hash | sender hash | incarnation |
    28       32         40             48          56
    | length | sequence | acknowledged | selective | body ...

The header alone tells whether the rest is worth reading: our magic, our version, our group, the process that
introduced itself on this connection, and a length within the limit.
"""

import struct
from enum import IntEnum
from hashlib import blake2b

from priocast.core.errors import ForeignFrame, VersionMismatch
from priocast.core.identity import ProcessId
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.links.fifo_link import Frame

WIRE_VERSION = 1
FRAME_BYTES_MAX = PAYLOAD_BYTES_MAX + 512 * 1024
_MAGIC = b"\xb7P"
_HEADER = struct.Struct("!2sBBQQQIQQQ")
HEADER_BYTES = _HEADER.size
_BUFFER_BYTES = 256 * 1024


class Kind(IntEnum):
    """What a frame is for."""

    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    DATA = 4
    GOODBYE = 5


_KINDS = {kind.value: kind for kind in Kind}


def hash_of(name: str) -> int:
    """Eight bytes that stand for a name in the header."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


class FrameWriter:
    """Writes the frames of one process in one group."""

    def __init__(self, group: str, me: ProcessId) -> None:
        self._group = hash_of(group)
        self._sender = hash_of(me.name)
        self._incarnation = me.incarnation

    def frame(self, kind: Kind, body: bytes = b"") -> bytes:
        """A frame of the handshake."""
        return self._header(kind, len(body), 0, 0, 0) + body

    def data(self, frame: Frame) -> tuple[bytes, bytes]:
        """A link's frame, as its header and its body (which is not copied)."""
        header = self._header(Kind.DATA, len(frame.body), frame.sequence, frame.acknowledged, frame.selective)
        return header, frame.body

    def _header(self, kind: Kind, length: int, sequence: int, acknowledged: int, selective: int) -> bytes:
        assert length <= FRAME_BYTES_MAX
        return _HEADER.pack(
            _MAGIC,
            WIRE_VERSION,
            kind,
            self._group,
            self._sender,
            self._incarnation,
            length,
            sequence,
            acknowledged,
            selective,
        )


class FrameReader:
    """Cuts a stream of bytes into frames; the connection reads into its buffer.

    Once `expect` was called, frames of any other group or process are refused.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(_BUFFER_BYTES)
        self._end = 0
        self._expected: tuple[int, int, int] | None = None

    def expect(self, group: str, peer: ProcessId) -> None:
        """From now on, all frames must be of this peer."""
        self._expected = (hash_of(group), hash_of(peer.name), peer.incarnation)

    def free(self) -> memoryview:
        """Where the next bytes go."""
        return memoryview(self._buffer)[self._end :]

    def read(self, count: int) -> list[tuple[Kind, Frame]]:
        """The frames that are whole after `count` more bytes have come."""
        self._end += count
        view = memoryview(self._buffer)
        frames: list[tuple[Kind, Frame]] = []
        start = 0
        while self._end - start >= HEADER_BYTES:
            kind, length, sequence, acknowledged, selective = self._check_header(start)
            stop = start + HEADER_BYTES + length
            if stop > self._end:
                break
            body = bytes(view[start + HEADER_BYTES : stop])
            frames.append((kind, Frame(sequence, acknowledged, selective, body)))
            start = stop
        if start == self._end:
            self._end = 0
        else:
            self._keep_rest(start)
        return frames

    def _check_header(self, start: int) -> tuple[Kind, int, int, int, int]:
        magic, version, kind, group, sender, incarnation, length, sequence, acknowledged, selective = (
            _HEADER.unpack_from(self._buffer, start)
        )
        if magic != _MAGIC:
            raise ForeignFrame("this is not Priocast speaking: check the port")
        if version != WIRE_VERSION:
            raise VersionMismatch(
                f"the peer speaks version {version} of the wire format, this process version {WIRE_VERSION}: "
                "run the same release of Priocast everywhere"
            )
        if length > FRAME_BYTES_MAX:
            raise ForeignFrame(f"a frame of {length:,} bytes is over the limit of {FRAME_BYTES_MAX:,}")
        if self._expected is not None and (group, sender, incarnation) != self._expected:
            raise ForeignFrame("a frame names another group or sender than the connection's introduction")
        known = _KINDS.get(kind)
        if known is None:
            raise ForeignFrame(f"a frame is of unknown kind {kind}")
        return known, length, sequence, acknowledged, selective

    def _keep_rest(self, start: int) -> None:
        rest = self._end - start
        needed = HEADER_BYTES
        if rest >= HEADER_BYTES:
            needed += self._check_header(start)[1]
        if needed > len(self._buffer):
            # The event loop may still hold the old buffer, so it cannot grow in place.
            larger = bytearray(needed)
            larger[:rest] = self._buffer[start : self._end]
            self._buffer = larger
        elif start:
            self._buffer[:rest] = self._buffer[start : self._end]
        self._end = rest
