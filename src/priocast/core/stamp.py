"""Stamps: what an order that shares slots among its senders attaches to every message that it delivers.

A stamp names the message's place independently of the position: two members give a message the same stamp,
also on two sides of a partition, no two messages have the same one, and every process delivers in the order
of the stamps (the adaptive paper, section 1.1).
"""

from typing import Annotated, NamedTuple

import msgspec

from priocast.core.identity import Number
from priocast.core.view import ViewId
from priocast.core.view_reason import MEMBERS_MAX


class DistributionId(NamedTuple):
    """The id of a distribution of slots in a view: a number, and the rank of the member that proposed it."""

    number: Number
    rank: Annotated[int, msgspec.Meta(ge=0, lt=MEMBERS_MAX)]

    def __str__(self) -> str:
        return f"{self.number}.{self.rank}"


class Stamp(msgspec.Struct, frozen=True, order=True, gc=False):
    """The view in which a message was ordered, the distribution that ordered it, and its number there.

    `number` counts the messages before it in the distribution, and the slots before it that were skipped.
    """

    view: ViewId
    distribution: DistributionId
    number: int

    def after(self, count: int) -> "Stamp":
        """The stamp of the message that is `count` messages later in the same batch."""
        return Stamp(self.view, self.distribution, self.number + count) if count else self

    def __str__(self) -> str:
        return f"{self.view}/{self.distribution}/{self.number}"
