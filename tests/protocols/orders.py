"""Which orders the shared property suite runs over, and how long it searches."""

import os

from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from priocast.protocols import LAYERS, PROTOCOLS, all_orders

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
_ALL = [(order, twin) for order in all_orders() for twin in TWINS if order in PROTOCOLS or twin == "strict"]

#: A policy acts by the sort keys of queues, and a layer by the interface of all protocols. So each order is
#: combined with one policy against starvation and lies below one layer, by turns; if PRIOCAST_PATIENCE is
#: above 1, as in `make soak`, with all of them and more examples. `make fresh` draws from all policies.
_BY_TURNS = [
    combined
    for number, order in enumerate(PROTOCOLS)
    for combined in (
        (order, "plain"),
        (order, "strict"),
        (order, ("ageing", "flush")[number % 2]),
        (f"{list(LAYERS)[number // 2 % 2]}/{order}", "strict"),
    )
]

ORDERED_TWINS = _ALL if _PATIENCE > 1 else _BY_TURNS


def patiently(examples: int) -> int:
    """So many examples, or as many times more as PRIOCAST_PATIENCE says."""
    return _PATIENCE * examples
