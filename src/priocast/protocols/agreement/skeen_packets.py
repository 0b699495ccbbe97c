"""The packets of destinations agreement on a single message: proposed and final timestamps of frames."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.protocol import Packet

TIMESTAMPS_MAX = 1024

Timestamps = Annotated[
    tuple[Annotated[int, msgspec.Meta(ge=1, le=1 << 62)], ...],
    msgspec.Meta(min_length=1, max_length=TIMESTAMPS_MAX),
]


class ProposedTimestamps(Packet, frozen=True, tag="proposed-timestamps"):
    """From a destination to a sender: proposals for its frames, from the number `first` on."""

    first: Number
    timestamps: Timestamps


class FinalTimestamps(Packet, frozen=True, tag="final-timestamps"):
    """From a sender to all: the final timestamps of its frames, from the number `first` on."""

    TO_ALL = True

    first: Number
    timestamps: Timestamps
