"""The wire format over TCP: a fixed header that is checked first, then the body.

    0       2         3      4            12            20            28
    | magic | version | kind | group hash | sender hash | incarnation |
    28       32        40         48             56          64
    | length | channel | sequence | acknowledged | selective | body ...

The header alone decides whether the rest is read: magic, version, the process that introduced itself on this
connection, and a length within the limit. Its first 28 bytes are the same for all frames of one incarnation
in one group: the writer keeps them, and the reader checks them only when they change.
"""

import struct
from enum import IntEnum
from hashlib import blake2b

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.links.frame import Frame
from priocast.network.rejections import Reason

WIRE_VERSION = 4
# A payload, and what 256 members say about each other at a view change or in re-ordering.
FRAME_BYTES_MAX = PAYLOAD_BYTES_MAX + 1536 * 1024
INTRODUCTION_BYTES_MAX = 1024
_MAGIC = b"\xb7P"
_ORIGIN = struct.Struct("!2sBBQQQ")
_HEADER = struct.Struct(f"!{_ORIGIN.size}sIQQQQ")
HEADER_BYTES = _HEADER.size
_BUFFER_BYTES_FIRST = 16 * 1024
_BUFFER_BYTES = 256 * 1024


class FrameKind(IntEnum):
    """The purpose of a frame."""

    HELLO = 1
    WELCOME = 2
    REJECTED = 3
    DATA = 4


_KINDS = {kind.value: kind for kind in FrameKind}


def hash_of(name: str) -> int:
    """A 64-bit hash that represents a name in the header."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


class FrameWriter:
    """Encodes the frames of one process in one group."""

    def __init__(self, group: str, me: ProcessId) -> None:
        self._names = hash_of(group), hash_of(me.name), me.incarnation
        self._data = self._origin(FrameKind.DATA)

    def frame(self, kind: FrameKind, body: bytes = b"") -> bytes:
        """Encode a frame of the handshake."""
        return _HEADER.pack(self._origin(kind), len(body), 0, 0, 0, 0) + body

    def data(self, frames: list[Frame]) -> list[bytes]:
        """Encode frames of links, as headers and bodies (which are not copied)."""
        parts = []
        origin, pack = self._data, _HEADER.pack
        for frame in frames:
            body = frame.body
            assert len(body) <= FRAME_BYTES_MAX
            parts.append(
                pack(origin, len(body), frame.channel, frame.sequence, frame.acknowledged, frame.selective)
            )
            if body:
                parts.append(body)
        return parts

    def _origin(self, kind: FrameKind) -> bytes:
        return _ORIGIN.pack(_MAGIC, WIRE_VERSION, kind, *self._names)


class ReceivedFrames:
    """The frames of one read that belong to one group (by its hash) and one incarnation of the peer.

    `origin` is what their headers have in common.
    """

    __slots__ = ("frames", "group", "incarnation", "kind", "origin")

    def __init__(self, kind: FrameKind, group: int, incarnation: int, origin: bytes) -> None:
        self.kind = kind
        self.group = group
        self.incarnation = incarnation
        self.origin = origin
        self.frames: list[Frame] = []


class FrameReader:
    """Splits a stream of bytes into frames; the connection reads into its buffer.

    At first there is room for an introduction only. After `expect`, frames may have their full size and the
    buffer grows with what arrives; frames of any other process are rejected.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(HEADER_BYTES + INTRODUCTION_BYTES_MAX)
        self._view = memoryview(self._buffer)
        self._end = 0
        self._origin = b""  # of the last frame: checked, and what it says
        self._origin_fields = (FrameKind.HELLO, 0, 0)
        self._bytes_max = INTRODUCTION_BYTES_MAX
        self._sender: int | None = None

    def expect(self, peer: str) -> None:
        """From now on, all frames must come from this peer."""
        self._sender = hash_of(peer)
        self._bytes_max = FRAME_BYTES_MAX
        self._origin = b""
        self._move_to(bytearray(_BUFFER_BYTES_FIRST), 0)

    def free(self) -> memoryview:
        """The free part of the buffer, for the next bytes."""
        return self._view[self._end :] if self._end else self._view

    def read(self, count: int) -> list[ReceivedFrames]:
        """The frames that are complete after `count` more bytes were received."""
        self._end += count
        end, view, unpack, bytes_max = self._end, self._view, _HEADER.unpack_from, self._bytes_max
        all_received: list[ReceivedFrames] = []
        received: ReceivedFrames | None = None
        start, stop = 0, HEADER_BYTES
        while start + HEADER_BYTES <= end:
            origin, length, channel, sequence, acknowledged, selective = unpack(view, start)
            if received is None or origin != received.origin:
                received = self._received_from(origin, all_received)
            if length > bytes_max:
                raise Rejected(Reason.TOO_LONG, f"{length:,} bytes; the limit is {bytes_max:,}")
            body_start = start + HEADER_BYTES
            stop = body_start + length
            if stop > end:
                break
            body = bytes(view[body_start:stop]) if length else b""
            received.frames.append(Frame(channel, sequence, acknowledged, selective, body))
            start, stop = stop, stop + HEADER_BYTES
        if received is not None and not received.frames:
            all_received.pop()  # its first frame is not complete
        if start == end < len(self._buffer) <= _BUFFER_BYTES:
            self._end = 0
        else:
            self._keep_rest(start, stop - start)
        return all_received

    def _received_from(self, origin: bytes, all_received: list[ReceivedFrames]) -> ReceivedFrames:
        """Where the frames of one origin are collected; it is checked if it is not that of the last frame."""
        for received in all_received:
            if received.origin == origin:
                return received
        if origin != self._origin:
            self._origin_fields = self._check_origin(origin)
            self._origin = origin
        kind, group, incarnation = self._origin_fields
        received = ReceivedFrames(kind, group, incarnation, origin)
        all_received.append(received)
        return received

    def _check_origin(self, origin: bytes) -> tuple[FrameKind, int, int]:
        magic, version, kind, group, sender, incarnation = _ORIGIN.unpack(origin)
        if magic != _MAGIC:
            raise Rejected(
                Reason.NOT_PRIOCAST, "the peer does not speak the Priocast protocol: check the port"
            )
        if version != WIRE_VERSION:
            raise Rejected(
                Reason.OTHER_VERSION,
                f"the peer uses version {version} of the wire format, this process version {WIRE_VERSION}: "
                "run the same release of Priocast everywhere",
            )
        if kind not in _KINDS:
            raise Rejected(Reason.UNKNOWN_KIND, f"kind {kind}")
        if self._sender is not None and sender != self._sender:
            raise Rejected(Reason.OTHER_SENDER, "another process introduced itself on this connection")
        return _KINDS[kind], group, incarnation

    def _keep_rest(self, start: int, needed: int) -> None:
        """Move the incomplete rest to the front of a buffer; `needed` is the size of its frame."""
        rest = self._end - start
        size = self._size_for(rest, needed)
        if size != len(self._buffer):
            # The event loop may still hold the old buffer, so it cannot grow in place.
            self._move_to(bytearray(size), start)
        elif start and rest:
            self._view[:rest] = self._view[start : self._end]
        self._end = rest

    def _move_to(self, buffer: bytearray, start: int) -> None:
        """Use another buffer, with what was received from `start` on at its front."""
        buffer[: self._end - start] = self._view[start : self._end]
        self._buffer, self._view = buffer, memoryview(buffer)

    def _size_for(self, rest: int, needed: int) -> int:
        """The size of the buffer for the next read.

        It follows what arrives, not what a header announces: a connection that sends nothing more must not
        take more memory. It doubles when a read has filled it; a long frame doubles it further, for itself.
        """
        size = len(self._buffer)
        if self._sender is None:
            return size
        if self._end == size < _BUFFER_BYTES:
            size = min(2 * size, _BUFFER_BYTES)
        if needed <= size:
            return min(size, _BUFFER_BYTES) if needed <= _BUFFER_BYTES else size
        return max(size, min(needed, 2 * rest))
