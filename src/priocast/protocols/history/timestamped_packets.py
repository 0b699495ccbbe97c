"""The packets of orders by Lamport timestamps: messages with a timestamp, and a timestamp alone."""

from priocast.core.identity import PositiveNumber
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import Batches, BottleneckName

Timestamp = PositiveNumber


class StampedData(Packet, frozen=True, tag="stamped"):
    """From a sender to all: its messages, which have this timestamp.

    `bottleneck` names the member whose grant the sender's next messages wait for, if they wait.
    """

    TO_ALL = True

    timestamp: Timestamp
    batches: Batches
    bottleneck: BottleneckName = ""


class NullMessage(Packet, frozen=True, tag="null"):
    """From a member to all: it sends nothing more up to this timestamp."""

    TO_ALL = True

    timestamp: Timestamp
