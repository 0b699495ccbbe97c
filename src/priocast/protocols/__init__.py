"""The protocols, by name."""

from collections.abc import Iterable

from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict
from priocast.protocols.adaptive.adaptive import Adaptive
from priocast.protocols.agreement.proposal import AgreementProposal
from priocast.protocols.agreement.sets import AgreementSets
from priocast.protocols.agreement.skeen import AgreementSkeen
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.history.all_ack import AllAck
from priocast.protocols.history.causal import CausalHistory
from priocast.protocols.history.merge import DeterministicMerge
from priocast.protocols.parts import CountParts, Parts, TimeParts, layered
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.ring.moving_bb import MovingBb
from priocast.protocols.ring.moving_ub import MovingUb
from priocast.protocols.ring.moving_uub import MovingUub
from priocast.protocols.ring.token_ring import TokenRing
from priocast.protocols.sequencer.bb import SequencerBb
from priocast.protocols.sequencer.ub import SequencerUb
from priocast.protocols.sequencer.uub import SequencerUub

PROTOCOLS: dict[str, type[OrderingProtocol]] = {
    protocol.NAME: protocol
    for protocol in (
        SequencerUb,
        SequencerBb,
        SequencerUub,
        MovingUb,
        MovingBb,
        MovingUub,
        TokenRing,
        CausalHistory,
        AllAck,
        DeterministicMerge,
        AgreementSkeen,
        AgreementSets,
        AgreementProposal,
        Reorder,
        ReorderLocks,
        Adaptive,
    )
}


LAYERS: dict[str, type[Parts]] = {layer.LAYER: layer for layer in (TimeParts, CountParts)}


def find_protocol(name: str) -> type[OrderingProtocol]:
    """The protocol with this name; raises an error that lists the names if there is none.

    A layer's name precedes the name of the protocol below it: `time-parts/sequencer-ub`.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    layer, _, inner = name.rpartition("/")
    if layer in LAYERS and inner in PROTOCOLS:
        return layered(LAYERS[layer], PROTOCOLS[inner])
    raise UnknownProtocol(
        f"there is no protocol {name!r}; there are: {', '.join(sorted(PROTOCOLS))}; "
        f"and layers over any of them, as in 'time-parts/sequencer-ub': {', '.join(sorted(LAYERS))}"
    )


def takes_policy(protocol: type[OrderingProtocol], policy: Starvation) -> bool:
    """Whether a protocol gives the bound on overtaking that a policy promises; some promise none."""
    return protocol.TAKES_STARVATION_POLICY or isinstance(policy, Strict | FirstInFirstOut)


def check_order(name: str, primary: bool, policy: Starvation) -> type[OrderingProtocol]:
    """The protocol with this name; raises an error if it is not for such a group, or for this policy."""
    protocol = find_protocol(name)
    if not takes_policy(protocol, policy):
        raise InvalidOption(
            f"order is {name!r}, in which the starvation policy '{policy}' would not bound overtaking: use "
            "the policy 'none' with the option overtakes_max, or another order"
        )
    if not primary and not protocol.PARTITIONABLE:
        raise InvalidOption(
            f"order is {name!r}, which is not for partitionable groups: a member may learn positions "
            "from packets that others never receive; use another order, or the policy 'primary'"
        )
    return protocol


def all_orders(layered_over: Iterable[str] | None = None) -> list[str]:
    """The names of all protocols, and of the layers over the given ones; None: over all."""
    inner = list(PROTOCOLS if layered_over is None else layered_over)
    return [*PROTOCOLS, *(f"{layer}/{name}" for layer in LAYERS for name in inner)]
