"""Table 3, the other way: for what a quality does not promise, the seed of a run in which it does not hold.

The runs are those of `priocast simulate --quality`: their faults are those that the promises tolerate.
"""

from typing import NamedTuple

from priocast.core.guarantees import (
    AT_LEAST,
    SERVICE_CAUSAL_ORDER,
    SERVICE_TOTAL_ORDER,
    TIGHTNESS,
    UNANIMITY,
)


class PinnedAbsence(NamedTuple):
    """A guarantee that a quality does not promise, and the seed of a run without it."""

    quality: str
    guarantee: str
    seed: int


PINNED_ABSENCES = [
    PinnedAbsence("unreliable", UNANIMITY, 0),
    PinnedAbsence("unreliable", SERVICE_TOTAL_ORDER, 6),
    PinnedAbsence("best-effort:2", TIGHTNESS, 0),
    PinnedAbsence("best-effort:2", UNANIMITY, 0),
    PinnedAbsence("best-effort:2", SERVICE_TOTAL_ORDER, 0),
    PinnedAbsence("best-effort:2", SERVICE_CAUSAL_ORDER, 1),
    PinnedAbsence("best-effort:b,c", AT_LEAST, 25),
    PinnedAbsence("at-least:2", TIGHTNESS, 0),
    PinnedAbsence("at-least:2", UNANIMITY, 8),
    PinnedAbsence("at-least:2", SERVICE_TOTAL_ORDER, 0),
    PinnedAbsence("at-least:2", SERVICE_CAUSAL_ORDER, 1),
    PinnedAbsence("reliable", TIGHTNESS, 0),
    PinnedAbsence("reliable", SERVICE_TOTAL_ORDER, 0),
    PinnedAbsence("reliable", SERVICE_CAUSAL_ORDER, 1),
    PinnedAbsence("causal", TIGHTNESS, 0),
    PinnedAbsence("causal", SERVICE_TOTAL_ORDER, 0),
    PinnedAbsence("atomic", TIGHTNESS, 0),
    PinnedAbsence("tight", TIGHTNESS, 0),
]
