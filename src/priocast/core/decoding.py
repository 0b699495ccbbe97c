"""Decoding what another process sent: the one place where a failure becomes the peer's fault.

Decoders raise more than `msgspec.MsgspecError`: text that is not UTF-8 raises `UnicodeDecodeError`, deep
nesting `RecursionError`. Whoever decodes something foreign calls `decode`, and has one error to handle; or,
where that happens for every message, catches what is `UNREADABLE`.
Structs check what their types cannot say in `__post_init__` with a `ValueError`, never with an assertion.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from priocast.core.errors import ForeignFrame

Decoded = TypeVar("Decoded")

UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
_DETAIL_LENGTH_MAX = 200


def decode(decoder: Callable[[bytes], Decoded], body: bytes, source: object, what: str) -> Decoded:
    """Decode what `source` sent; raises ForeignFrame, which says `what` it was, if that fails in any way."""
    try:
        return decoder(body)
    except UNREADABLE as error:
        raise unreadable(source, what, error) from error


def unreadable(source: object, what: str, error: Exception) -> ForeignFrame:
    """The error to raise if `what` a source sent cannot be decoded."""
    return ForeignFrame(f"{source} sent {what} that cannot be read: {str(error)[:_DETAIL_LENGTH_MAX]}")
