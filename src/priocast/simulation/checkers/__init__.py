"""The checkers that watch a run, by what it promises."""

from priocast.core.protocol import OrderingOptions
from priocast.simulation.checkers.agreement import Agreement
from priocast.simulation.checkers.checker import Checker, Report
from priocast.simulation.checkers.fifo import Fifo
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.checkers.liveness import Liveness
from priocast.simulation.checkers.priority import Priority
from priocast.simulation.checkers.total_order import TotalOrder
from priocast.simulation.checkers.window import Window


def checkers_for(
    options: OrderingOptions, members: tuple[str, ...], orderer: str, expected: dict[str, int], report: Report
) -> list[Checker]:
    """One of each that applies; `expected` says how many messages each member wishes to broadcast."""
    checkers: list[Checker] = [
        Integrity(report),
        TotalOrder(report),
        Fifo(report),
        Liveness(report, members, expected),
        Agreement(report, members),
    ]
    if orderer:
        checkers.append(Priority(report, orderer, options.policy))
    if orderer and options.window is not None:
        checkers.append(Window(report, orderer, members, options.window))
    return checkers
