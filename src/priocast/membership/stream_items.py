"""What an application finds at the head of its stream."""

import msgspec

from priocast.core.message import OrderedBatch
from priocast.membership.packets import OrderDigest, Proposal
from priocast.membership.snapshot import Snapshot


class ViewStart(msgspec.Struct, frozen=True):
    """The position where a view begins."""

    proposal: Proposal
    digest: OrderDigest


class StateRestore(msgspec.Struct, frozen=True):
    """The position where the application restores the group's state."""

    snapshot: Snapshot


Head = OrderedBatch | ViewStart | StateRestore
