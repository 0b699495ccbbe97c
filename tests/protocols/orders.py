"""Which orders the shared property suite runs over, and how long it searches."""

import os

from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from priocast.protocols import PROTOCOLS, all_orders

_MILLISECOND = 1_000_000
_PATIENCE = int(os.environ.get("PRIOCAST_PATIENCE", "1"))

Twin = tuple[bool, Starvation]

AGEING = Ageing(_MILLISECOND)
FLUSH = PeriodicRelease(10 * _MILLISECOND)

TWINS: dict[str, Twin] = {
    "plain": (False, Strict()),
    "strict": (True, Strict()),
    "ageing": (True, AGEING),
    "flush": (True, FLUSH),
}

#: Layers are over one class of each kind.
_LAYERED = ["sequencer-ub", "token-ring", "causal-history", "agreement-skeen", "agreement-sets", "reorder"]
ORDERS = all_orders(_LAYERED)

#: Every order with every policy, and layers over all of them. A layer runs what it is laid over plain, so
#: policies do nothing there; and without priorities it is that order itself.
ORDERED_TWINS = [
    (order, twin) for order in all_orders() for twin in TWINS if order in PROTOCOLS or twin == "strict"
]


def patiently(examples: int) -> int:
    """So many examples, or as many times more as PRIOCAST_PATIENCE says."""
    return _PATIENCE * examples
