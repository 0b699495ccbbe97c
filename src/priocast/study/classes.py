"""The effect of priorities under overload: the same workload for each protocol, plain and prioritised."""

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


class Variant(msgspec.Struct, frozen=True):
    """The result of one run.

    `inversions` are pairs of which the group delivered the less urgent message first; see the pipeline's
    table of the same name. `longest_ms` is the longest time that any message took.
    """

    urgent: Times
    background: Times
    inversions: int
    longest_ms: float


class ClassRow(msgspec.Struct, frozen=True):
    """The results of one protocol: plain and prioritised."""

    order: str
    plain: Variant
    prioritised: Variant

    @property
    def gain(self) -> float:
        """The ratio of the 99th percentiles of urgent messages: plain to prioritised."""
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


def _planned(order: str, variant: str, workload: Workload, options: OrderingOptions) -> PlannedRun:
    name = f"{order.replace('/', '-over-')}-{variant}"
    return PlannedRun(name=name, title=f"{order}, {variant}", workload=workload, order=order, options=options)


def class_row(
    order: str,
    runs: tuple[PlannedRun, PlannedRun],
    times: dict[tuple[str, int], Times],
    inversions: dict[str, int],
) -> ClassRow:
    """Combine the measurements of one protocol: times by run and priority, inversions by run."""

    def variant(run: PlannedRun) -> Variant:
        of_run = {priority: each for (name, priority), each in times.items() if name == run.name}
        longest_ms = max(each.max_ms for each in of_run.values())
        return Variant(of_run[URGENT], of_run[BACKGROUND], inversions.get(run.name, 0), longest_ms)

    return ClassRow(order, *map(variant, runs))
