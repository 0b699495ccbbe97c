"""The packets that protocols share."""

from priocast.core.identity import Number, PositiveNumber
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import Batches, BottleneckName, Position, References


class Submit(Packet, frozen=True, tag="submit"):
    """From a member to the one that assigns positions, or is believed to: order these."""

    batches: Batches


class Data(Packet, frozen=True, tag="data"):
    """From a member to all: these are to be ordered."""

    TO_ALL = True

    batches: Batches


class Ordered(Packet, frozen=True, tag="ordered"):
    """From the member that assigns positions to all: these messages have the positions from `position` on.

    `bottleneck` names the member whose grant the next ones wait for, if they do.
    """

    TO_ALL = True

    position: Position
    batches: Batches
    bottleneck: BottleneckName = ""

    @property
    def position_end(self) -> int:
        """The position after the last message."""
        return self.position + sum(batch.count for batch in self.batches)


class Order(Packet, frozen=True, tag="order"):
    """From the member that assigns positions to all: the messages referred to have these positions.

    `bottleneck` names the member whose grant the next ones wait for, if they do.
    """

    TO_ALL = True

    position: Position
    references: References
    bottleneck: BottleneckName = ""

    @property
    def position_end(self) -> int:
        """The position after the last message."""
        return self.position + sum(reference.count for reference in self.references)


class Consumed(Packet, frozen=True, tag="consumed"):
    """From a destination: my application consumed `total` of your messages; I grant `window` more."""

    total: Number
    window: PositiveNumber
