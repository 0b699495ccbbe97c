"""The packets of the deterministic merge: what fills a member's slots."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import Batches, BottleneckName

SKIPPED_MAX = 1_024


class Slot(Packet, frozen=True, tag="slot"):
    """From a member to all: the messages in its slot of this round.

    `bottleneck` names the member whose grant the sender's next messages wait for, if they wait.
    """

    TO_ALL = True

    round: Number
    batches: Batches
    bottleneck: BottleneckName = ""


class SkippedSlots(Packet, frozen=True, tag="skipped-slots"):
    """From a member to all: its slots of `count` rounds, from this one on, are empty."""

    TO_ALL = True

    round: Number
    count: Annotated[int, msgspec.Meta(ge=1, le=SKIPPED_MAX)]
