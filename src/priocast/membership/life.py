"""What membership decides, for the member that lives it and for those who look back on it."""

from collections.abc import Callable

import msgspec

from priocast.core.message import OrderedBatch
from priocast.core.view import View
from priocast.membership.epoch import Epoch
from priocast.membership.packets import OrderDigest, Proposal


class Change(msgspec.Struct, frozen=True):
    """A view that was installed: why, when, and for how long nothing could be ordered before."""

    view: View
    reason: str
    at: int
    took_ns: int


class Life(msgspec.Struct, frozen=True):
    """What the member does when membership decides: begin a view, or be out of the group."""

    begin: Callable[[Proposal, OrderDigest, Epoch | None, int], Epoch]
    departed: Callable[[str, bool, int], None]
    digest: Callable[[int, list[OrderedBatch]], OrderDigest]
