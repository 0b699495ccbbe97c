"""The packets of the adaptive order. Both say which turns their sender has used, and in which distribution.

The first packet that a member sends in a distribution carries its weights. It does so even if others have
sent them before: of a packet that is lost with its sender nobody need know the weights.
"""

from priocast.core.identity import Number
from priocast.core.protocol import Packet
from priocast.core.stamp import DistributionId
from priocast.protocols.adaptive.slots import Weights
from priocast.protocols.flow.frames import Batches, BottleneckName


class FilledSlot(Packet, frozen=True, tag="filled-slot"):
    """From a member to all: the messages in its slot of this turn; it skips further turns up to `turn_next`.

    `report` is what its adaptation policy has to say. `bottleneck` names the member whose grant the sender's
    next messages wait for, if they wait.
    """

    TO_ALL = True

    distribution: DistributionId
    turn: Number
    turn_next: Number
    batches: Batches
    weights: Weights = ()
    report: Number = 0
    bottleneck: BottleneckName = ""


class SkippedTurns(Packet, frozen=True, tag="skipped-turns"):
    """From a member to all (the paper's dummy): it fills no slot before that of the turn `turn_next`."""

    TO_ALL = True

    distribution: DistributionId
    turn_next: Number
    weights: Weights = ()
    report: Number = 0
