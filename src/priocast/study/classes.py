"""What priorities buy under overload, class by class: the same work through each, plain and prioritised."""

from typing import NamedTuple

import msgspec

from priocast.core.priority import BACKGROUND, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.study.overload import PlannedRun
from priocast.study.workload import Workload


class Times(NamedTuple):
    """How long messages of one priority took in one run."""

    median_ms: float
    p99_ms: float
    max_ms: float


class Twin(msgspec.Struct, frozen=True):
    """What came of the work in one run.

    `inversions` are pairs of which the group delivered the less urgent message first; see the pipeline's
    table of the same name. `longest_ms` is the longest time that any message took.
    """

    urgent: Times
    background: Times
    inversions: int
    longest_ms: float


class ClassRow(msgspec.Struct, frozen=True):
    """What one class of total order makes of the work: plain and prioritised."""

    order: str
    plain: Twin
    prioritised: Twin

    @property
    def gain(self) -> float:
        """How many times sooner 99 of 100 urgent messages arrive."""
        return self.plain.urgent.p99_ms / self.prioritised.urgent.p99_ms


def plan_classes(
    orders: list[str], workload: Workload, options: OrderingOptions
) -> dict[str, tuple[PlannedRun, PlannedRun]]:
    """The runs of each class: plain, and prioritised."""
    plain = msgspec.structs.replace(options, prioritised=False)
    return {
        order: (
            _planned(order, "plain", workload, plain),
            _planned(order, "prioritised", workload, options),
        )
        for order in orders
    }


def _planned(order: str, twin: str, workload: Workload, options: OrderingOptions) -> PlannedRun:
    name = f"{order.replace('/', '-over-')}-{twin}"
    return PlannedRun(name=name, title=f"{order}, {twin}", workload=workload, order=order, options=options)


def class_row(
    order: str,
    runs: tuple[PlannedRun, PlannedRun],
    times: dict[tuple[str, int], Times],
    inversions: dict[str, int],
) -> ClassRow:
    """Put together what was measured of one class: times by run and priority, inversions by run."""

    def twin(run: PlannedRun) -> Twin:
        of_run = {priority: each for (name, priority), each in times.items() if name == run.name}
        longest_ms = max(each.max_ms for each in of_run.values())
        return Twin(of_run[URGENT], of_run[BACKGROUND], inversions.get(run.name, 0), longest_ms)

    return ClassRow(order, *map(twin, runs))
