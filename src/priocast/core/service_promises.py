"""Table 3 of the xAMp paper: which quality of service promises which guarantee.

The properties Px1 to Px3 (views and addresses) are those of the group, and hold for every quality.
"""

from priocast.core.guarantees import (
    ACCESSIBILITY,
    AT_LEAST,
    BEST_EFFORT,
    DELIVERY,
    NON_TRIVIALITY,
    SERVICE_CAUSAL_ORDER,
    SERVICE_FIFO_ORDER,
    SERVICE_TOTAL_ORDER,
    TIGHTNESS,
    UNANIMITY,
)
from priocast.core.quality import Quality, QualityKind

_ALWAYS = (NON_TRIVIALITY, ACCESSIBILITY, DELIVERY, BEST_EFFORT, SERVICE_FIFO_ORDER)
_TO_ALL = (*_ALWAYS, AT_LEAST, UNANIMITY)
_IN_TOTAL_ORDER = (*_TO_ALL, SERVICE_CAUSAL_ORDER, SERVICE_TOTAL_ORDER)

PROMISES: dict[QualityKind, tuple[str, ...]] = {
    QualityKind.BEST_EFFORT: _ALWAYS,
    QualityKind.AT_LEAST: (*_ALWAYS, AT_LEAST),
    QualityKind.RELIABLE: _TO_ALL,
    QualityKind.CAUSAL: (*_TO_ALL, SERVICE_CAUSAL_ORDER),
    QualityKind.ATOMIC: _IN_TOTAL_ORDER,
    QualityKind.TIGHT: _IN_TOTAL_ORDER,
    QualityKind.DELTA: (*_IN_TOTAL_ORDER, TIGHTNESS),
}

FIFO_KINDS = (QualityKind.BEST_EFFORT, QualityKind.AT_LEAST, QualityKind.RELIABLE)
"""The messages of these qualities have one FIFO order together."""


def promising(guarantee: str) -> tuple[QualityKind, ...]:
    """The qualities that promise a guarantee."""
    return tuple(kind for kind, promised in PROMISES.items() if guarantee in promised)


def order_name(quality: Quality) -> str:
    """Messages with the same name are ordered among each other; others have no order.

    Delta messages are ordered by the time of delivery, so only those with the same time are in FIFO order.
    """
    if quality.kind in FIFO_KINDS:
        return "fifo"
    return str(quality if quality.kind is QualityKind.DELTA else quality.kind)
