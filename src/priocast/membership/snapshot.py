"""A snapshot of the application's state, as one member gives it to another."""

from hashlib import blake2b

import msgspec

_DIGEST_BYTES = 16


class Snapshot(msgspec.Struct, frozen=True):
    """The application's state before the message at `position`."""

    position: int
    digest: bytes
    data: bytes


def digest_of(data: bytes) -> bytes:
    """Identifies a snapshot, and shows whether it arrived complete."""
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()
