"""Packets that carry a sender's messages to all members, which agree on their order later."""

from priocast.core.identity import Number
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import Batches, BottleneckName


class PacedData(Packet, frozen=True, tag="data"):
    """From a sender to all: its messages.

    `bottleneck` names the member whose grant the sender's next messages wait for, if they wait.
    """

    TO_ALL = True

    batches: Batches
    bottleneck: BottleneckName = ""


class NumberedData(Packet, frozen=True, tag="data"):
    """From a sender to all: its messages, in its packet of this number (from 0 on).

    `bottleneck` is as in `PacedData`.
    """

    TO_ALL = True

    number: Number
    batches: Batches
    bottleneck: BottleneckName = ""
