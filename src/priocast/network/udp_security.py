"""Sealed datagrams, which only members of a group can create and read, and which are accepted once.

    0       2         3      4            12            20            28     36        44
    | magic | version | kind | group hash | sender hash | incarnation | salt | counter | sealed … tag |

Everything after the header is encrypted, and all of it is authenticated (AES-256-GCM), under a key that
belongs to one session: one start of one process in one group. It is derived (HKDF-SHA256) from the group's
key, the hashes, the incarnation and a random salt. The counter is the nonce and never repeats under a key,
not even if a process starts twice with the same incarnation, because the salt differs.

The receiver's session is authenticated as well, although it is not in the datagram: one that was sealed for
another process, or for an earlier start of this one, cannot be opened here. The kinds that go to all say so.

Several keys can be in use while a group changes its key: the first one seals, all of them open.

Any member can derive the key of any other: members of a group trust each other's names. Where they must not,
they have certificates, and each pair of them has keys of its own (`udp_certificates.py`).
"""

import struct
from collections.abc import Sequence
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
_SESSION = struct.Struct("!QQQQ")
_HEADER = struct.Struct(f"!2sBB{_SESSION.size}sQ")
_TAG_BYTES = 16
SEAL_BYTES = _HEADER.size + _TAG_BYTES
_NONCE_BYTES = 12
GROUP_KEY_BYTES = 32


class DatagramKind(IntEnum):
    """The purpose of a datagram. CALL and SHARED are a greeting and fragments to all: to any receiver."""

    GREETING = 1
    FRAMES = 2
    FRAGMENTS = 3
    RECEIVED = 4
    CALL = 5
    SHARED = 6


# Looking up a member of an enumeration takes as long as a tenth of sealing.
_CALL, _SHARED = DatagramKind.CALL, DatagramKind.SHARED

_KINDS = {kind.value: kind for kind in DatagramKind}


class Session(NamedTuple):
    """One start of one process in one group, as encoded in the header."""

    group: int
    sender: int
    incarnation: int
    salt: int

    def packed(self) -> bytes:
        """Encode it for the header."""
        return _SESSION.pack(*self)

    @classmethod
    def unpacked(cls, packed: bytes) -> "Session":
        """Decode it from the header."""
        return cls(*_SESSION.unpack(packed))


class Sealed(NamedTuple):
    """A datagram with a valid header, not authenticated yet. `session` is packed."""

    kind: DatagramKind
    session: bytes
    counter: int
    header: memoryview
    content: memoryview


class Sealer:
    """Seals the datagrams of one session; `counter` is that of the last one."""

    def __init__(self, group_key: bytes, session: Session) -> None:
        self._session = session.packed()
        self._cipher = _cipher(group_key, self._session)
        self.counter = 0

    def change_key(self, group_key: bytes) -> None:
        """Seal with another key from now on; the counter continues, so no nonce is used twice."""
        self._cipher = _cipher(group_key, self._session)

    def seal(
        self, kind: DatagramKind, content: bytes, to: bytes = b"", cipher: AESGCM | None = None
    ) -> bytes:
        """Create a datagram for the session `to`, or, if its kind says so, for all.

        `cipher` is that of a pair; the counter is the same for all. Send it at once: receivers accept
        counters only within a replay window.
        """
        assert (kind is _CALL or kind is _SHARED) is not bool(to), "a datagram is sealed for its receiver"
        self.counter += 1
        header = _HEADER.pack(_MAGIC, WIRE_VERSION, kind, self._session, self.counter)
        nonce = self.counter.to_bytes(_NONCE_BYTES)
        return header + (cipher or self._cipher).encrypt(nonce, content, header + to)


class Opener:
    """Opens the datagrams of one session of a peer, under any of the group's keys."""

    def __init__(self, group_keys: Sequence[bytes], session: bytes) -> None:
        self._ciphers = [_cipher(key, session) for key in group_keys]

    @classmethod
    def of_cipher(cls, cipher: AESGCM) -> "Opener":
        """Opens what was sealed with the cipher of a pair."""
        opener = cls((), b"")
        opener._ciphers.append(cipher)
        return opener

    def open(self, sealed: Sealed, me: bytes) -> bytes:
        """The content of the datagram, if this session sealed it for the session `me`, or for all."""
        nonce = sealed.counter.to_bytes(_NONCE_BYTES)
        context = bytes(sealed.header)
        if sealed.kind is not _CALL and sealed.kind is not _SHARED:
            context += me
        for cipher in self._ciphers:
            try:
                content = cipher.decrypt(nonce, sealed.content, context)
            except InvalidTag:
                continue
            if cipher is not self._ciphers[0]:  # the peer seals with this one: try it first from now on
                self._ciphers.remove(cipher)
                self._ciphers.insert(0, cipher)
            return content
        raise Rejected(
            Reason.NOT_AUTHENTIC, "sealed with another key or for another receiver, or altered in transit"
        )


def read_header(datagram: memoryview) -> Sealed:
    """Check and parse the header only."""
    if len(datagram) < SEAL_BYTES:
        raise Rejected(Reason.TRUNCATED, f"{len(datagram)} bytes")
    header = datagram[: _HEADER.size]
    magic, version, kind, session, counter = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise Rejected(Reason.NOT_PRIOCAST, "the peer does not speak the Priocast protocol: check the port")
    if version != WIRE_VERSION:
        raise Rejected(Reason.OTHER_VERSION, f"the peer uses version {version}, this process {WIRE_VERSION}")
    if kind not in _KINDS:
        raise Rejected(Reason.UNKNOWN_KIND, f"kind {kind}")
    return Sealed(_KINDS[kind], session, counter, header, datagram[_HEADER.size :])


def _cipher(group_key: bytes, session: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, None, b"priocast datagram" + session).derive(group_key))
