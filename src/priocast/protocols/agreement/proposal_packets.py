"""The packets of agreement on a proposed order: the steps of a round, from the starter and to it."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number, PositiveNumber
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import BottleneckName, References

_MEMBERS_MAX = 1024

RoundNumber = PositiveNumber
Counts = Annotated[tuple[Number, ...], msgspec.Meta(max_length=_MEMBERS_MAX)]


class StartConsensus(Packet, frozen=True, tag="start-consensus"):
    """From the starter: I have received this many messages of each member; reply with your counts."""

    round: RoundNumber
    received: Counts


class ReceivedCounts(Packet, frozen=True, tag="received-counts"):
    """To the starter: I have received this many messages of each member."""

    round: RoundNumber
    received: Counts


class ProposedOrder(Packet, frozen=True, tag="proposed-order"):
    """From the starter to all: these should be next in the order.

    `bottleneck` names the member whose grant the next messages wait for, if they wait.
    """

    TO_ALL = True

    round: RoundNumber
    position: Number
    references: References
    bottleneck: BottleneckName = ""


class OrderVote(Packet, frozen=True, tag="order-vote"):
    """To the starter: I accept the proposal. A member that found a fault in it does not vote."""

    round: RoundNumber


class ApplyOrder(Packet, frozen=True, tag="apply-order"):
    """From the starter to all: a majority has accepted; the proposed messages are next in the order."""

    TO_ALL = True

    round: RoundNumber
