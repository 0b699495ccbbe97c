"""All checkers of the qualities of service, by the guarantee that they check."""

from collections.abc import Collection

from priocast.core.quality import QualityKind
from priocast.simulation.checkers.checker import ReportViolation
from priocast.simulation.checkers.service_agreement import AtLeast, BestEffort, Unanimity
from priocast.simulation.checkers.service_checker import ServiceChecker
from priocast.simulation.checkers.service_history import ServiceHistory
from priocast.simulation.checkers.service_order import (
    ServiceCausalOrder,
    ServiceFifoOrder,
    ServiceTotalOrder,
)
from priocast.simulation.checkers.service_validity import (
    Accessibility,
    DeliveryOfSent,
    NonTriviality,
    Tightness,
)


def service_checkers(
    report: ReportViolation,
    history: ServiceHistory,
    precision_ns: int,
    kinds: Collection[QualityKind] | None = None,
) -> list[ServiceChecker]:
    """One checker of each guarantee.

    Each judges the messages of the qualities that promise its guarantee, or of these `kinds`. `precision_ns`
    is how far two clocks may be apart.
    """
    plain = (NonTriviality, Accessibility, DeliveryOfSent, Unanimity, AtLeast, BestEffort)
    ordered = (ServiceTotalOrder, ServiceCausalOrder, ServiceFifoOrder)
    return [
        *(checker(report, history, kinds) for checker in (*plain, *ordered)),
        Tightness(report, history, precision_ns, kinds),
    ]
