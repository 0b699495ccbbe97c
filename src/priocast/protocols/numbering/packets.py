"""What members send to request, grant and use sequence numbers."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number, PositiveNumber
from priocast.core.message import CONTROL
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import Batches, BottleneckName, Position

LEVELS = CONTROL + 1
#: The most pieces in which one member gets numbers in one turn.
RANGES_MAX = 64


class NumberRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Numbers for `count` messages that count for one level, and the bytes of these messages."""

    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    count: PositiveNumber
    size: Number

    def __str__(self) -> str:
        return f"{self.count} of level {self.level}, {self.size} bytes"


class RequestNumbers(Packet, frozen=True, tag="request-numbers"):
    """From a member to the one that grants numbers: I need these, the most urgent first."""

    requests: Annotated[tuple[NumberRequest, ...], msgspec.Meta(min_length=1, max_length=LEVELS)]


class NumberRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`count` numbers, from `position` on."""

    position: Position
    count: PositiveNumber

    def __str__(self) -> str:
        return f"{self.position}+{self.count}"


class NumberGrant(Packet, frozen=True, tag="number-grant"):
    """To a member: these numbers are yours, in rising order; those between them are others'.

    `bottleneck` names the member whose grant the next ones wait for, if they do.
    """

    ranges: Annotated[tuple[NumberRange, ...], msgspec.Meta(min_length=1, max_length=RANGES_MAX)]
    bottleneck: BottleneckName = ""


class Numbered(Packet, frozen=True, tag="numbered"):
    """From a member to all: these messages have the positions from `position` on, as they were granted."""

    TO_ALL = True

    position: Position
    batches: Batches
    bottleneck: BottleneckName = ""

    @property
    def count(self) -> int:
        """How many numbers the packet uses."""
        return sum(batch.count for batch in self.batches)
