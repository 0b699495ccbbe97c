"""What moving sequencers send besides what all classes do: tokens that carry what waits for them."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.message import Batch
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX
from priocast.protocols.numbering.packets import Numbered, NumberRequest
from priocast.protocols.ring.token_packets import MEMBERS_MAX, TokenWithRequests

Rank = Annotated[int, msgspec.Meta(ge=0, lt=MEMBERS_MAX)]


class PendingCopy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A copy of messages that wait for a position, and how long they have waited (ns)."""

    batch: Batch
    waited: Number

    def __str__(self) -> str:
        return f"{self.batch} for {self.waited} ns"


class TokenWithMessages(TokenWithRequests, frozen=True, tag="token"):
    """From the holder to another member: it is your turn, and these messages wait elsewhere.

    The copies are not `batches`: the messages themselves wait where they were submitted, also for a trace.
    """

    pending: Annotated[tuple[PendingCopy, ...], msgspec.Meta(max_length=FRAME_BATCHES_MAX)]


class NumberedByHolder(Numbered, frozen=True, tag="numbered"):
    """From a member to all: these messages have positions that the member of rank `giver` granted."""

    giver: Rank = 0


class PendingRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the member of rank `requester` has requested and was not granted, and its waiting time (ns)."""

    requester: Rank
    request: NumberRequest
    waited: Number

    def __str__(self) -> str:
        return f"{self.request} for rank {self.requester} for {self.waited} ns"


class TokenWithNumberRequests(TokenWithRequests, frozen=True, tag="token"):
    """From the holder to another member: it is your turn, and these number requests wait."""

    pending: Annotated[tuple[PendingRequest, ...], msgspec.Meta(max_length=FRAME_BATCHES_MAX)]
