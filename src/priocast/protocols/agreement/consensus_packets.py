"""The packets of agreement on sets of messages: those of consensus on the next set, and the decision."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.message import Reference
from priocast.core.protocol import WINDOW_MAX, Packet
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX, References

REFERENCES_MAX = FRAME_BATCHES_MAX
DECIDED = 1 << 62

Ballot = Annotated[int, msgspec.Meta(ge=0, le=DECIDED)]
Instance = Number
Value = tuple[Reference, ...]


class AcceptedValue(msgspec.Struct, frozen=True, array_like=True):
    """What a member accepted in an instance; a decided value counts as accepted in the highest ballot."""

    instance: Instance
    ballot: Ballot
    references: References


class ConsensusPrepare(Packet, frozen=True, tag="prepare"):
    """From a member that wants to lead: promise to accept nothing of earlier ballots."""

    ballot: Ballot
    instance: Instance


class ConsensusPromise(Packet, frozen=True, tag="promise"):
    """To the member that wants to lead: I promise that. I lack the decision of this instance.

    `accepted` is what I have accepted from there on.
    """

    ballot: Ballot
    instance: Instance
    accepted: Annotated[tuple[AcceptedValue, ...], msgspec.Meta(max_length=WINDOW_MAX)]


class ConsensusAccept(Packet, frozen=True, tag="accept"):
    """From the leader: accept this value. All members know the decisions before the instance `known`."""

    ballot: Ballot
    instance: Instance
    references: References
    known: Instance


class ConsensusAccepted(Packet, frozen=True, tag="accepted"):
    """To the leader: I have accepted the value, and I know the decisions before the instance `known`."""

    ballot: Ballot
    instance: Instance
    known: Instance


CONSENSUS_PACKETS = (ConsensusPrepare, ConsensusPromise, ConsensusAccept, ConsensusAccepted)


class SetDecision(Packet, frozen=True, tag="set-decision"):
    """From a leader to all: the set of this instance in its order, from this position on."""

    TO_ALL = True

    instance: Instance
    position: Number
    references: References
