"""Datagrams that only members of a group can make and read, each good for one use.

    0       2         3      4            12            20            28     36        44
    | magic | version | kind | group hash | sender hash | incarnation | salt | counter | sealed … tag |

Everything after the header is encrypted, and all of it is authenticated (AES-256-GCM), under a key that one
life of one process has to itself: it is derived (HKDF-SHA256) from the group's key, the hashes, the
incarnation and a salt that the life draws when it begins. The counter is the nonce and never repeats under a
key, not even when a process is started twice with one incarnation, because the salt differs.

Any member can derive any other's key: members of a group trust each other to be who they say. Whoever must
not uses TLS.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from priocast.core.errors import Rejected
from priocast.network.codec import WIRE_VERSION
from priocast.network.rejections import Reason

_MAGIC = b"\xb7U"
_LIFE = struct.Struct("!QQQQ")
_HEADER = struct.Struct(f"!2sBB{_LIFE.size}sQ")
_TAG_BYTES = 16
SEAL_BYTES = _HEADER.size + _TAG_BYTES
_NONCE_BYTES = 12
GROUP_KEY_BYTES = 32


class DatagramKind(IntEnum):
    """What a datagram is for."""

    GREETING = 1
    FRAMES = 2
    PIECES = 3
    SEEN = 4


_KINDS = {kind.value: kind for kind in DatagramKind}


class Life(NamedTuple):
    """One life of one process in one group, as the header names it."""

    group: int
    sender: int
    incarnation: int
    salt: int

    def packed(self) -> bytes:
        """As it stands in the header."""
        return _LIFE.pack(*self)

    @classmethod
    def unpacked(cls, packed: bytes) -> "Life":
        """As it stood in the header."""
        return cls(*_LIFE.unpack(packed))


class Sealed(NamedTuple):
    """A datagram whose header is one of ours; nothing in it is proven yet. `life` is packed."""

    kind: DatagramKind
    life: bytes
    counter: int
    header: memoryview
    content: memoryview


class Sealer:
    """Seals what one life says; `counter` is that of the datagram sealed last."""

    def __init__(self, group_key: bytes, life: Life) -> None:
        self._life = life.packed()
        self._cipher = _cipher(group_key, self._life)
        self.counter = 0

    def seal(self, kind: DatagramKind, content: bytes) -> bytes:
        """A datagram, ready to be sent; the network may reorder it, so seal just before."""
        self.counter += 1
        header = _HEADER.pack(_MAGIC, WIRE_VERSION, kind, self._life, self.counter)
        return header + self._cipher.encrypt(self.counter.to_bytes(_NONCE_BYTES), content, header)


class Opener:
    """Opens what one life of a peer has sealed."""

    def __init__(self, group_key: bytes, life: bytes) -> None:
        self._cipher = _cipher(group_key, life)

    def open(self, sealed: Sealed) -> bytes:
        """What the datagram says, if it was sealed by this life and not touched since."""
        try:
            return self._cipher.decrypt(sealed.counter.to_bytes(_NONCE_BYTES), sealed.content, sealed.header)
        except InvalidTag:
            raise Rejected(Reason.NOT_AUTHENTIC, "another key, or damaged on the way") from None


def read_header(datagram: memoryview) -> Sealed:
    """Look at the header alone."""
    if len(datagram) < SEAL_BYTES:
        raise Rejected(Reason.TRUNCATED, f"{len(datagram)} bytes")
    header = datagram[: _HEADER.size]
    magic, version, kind, life, counter = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise Rejected(Reason.NOT_PRIOCAST, "this is not Priocast speaking: check the port")
    if version != WIRE_VERSION:
        raise Rejected(Reason.OTHER_VERSION, f"version {version}, here {WIRE_VERSION}")
    if kind not in _KINDS:
        raise Rejected(Reason.UNKNOWN_KIND, f"kind {kind}")
    return Sealed(_KINDS[kind], life, counter, header, datagram[_HEADER.size :])


def _cipher(group_key: bytes, life: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, None, b"priocast datagram" + life).derive(group_key))
