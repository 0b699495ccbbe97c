"""Priorities under overload, for each protocol: plain, prioritised, and prioritised at half load."""

from typing import NamedTuple

import msgspec

from priocast.core.priority import BACKGROUND, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.study.overload import PlannedRun, plan
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
    """The results of one protocol: prioritised at half load; plain and prioritised under overload."""

    order: str
    half_load: Variant
    plain: Variant
    prioritised: Variant

    @property
    def gain(self) -> float:
        """The ratio of the 99th percentiles of urgent messages: plain to prioritised."""
        return self.plain.urgent.p99_ms / self.prioritised.urgent.p99_ms

    @property
    def of_half_load(self) -> float:
        """The 99th percentile of urgent messages under overload, as a multiple of that at half load."""
        return self.prioritised.urgent.p99_ms / self.half_load.urgent.p99_ms


def plan_classes(
    orders: list[str], workload: Workload, options: OrderingOptions
) -> dict[str, list[PlannedRun]]:
    """The runs of each class, in the order of the fields of `ClassRow`."""
    return {order: [_of_class(run) for run in plan(workload, order, options)] for order in orders}


def _of_class(run: PlannedRun) -> PlannedRun:
    name = f"{run.order.replace('/', '-over-')}-{run.name}"
    return msgspec.structs.replace(run, name=name, title=f"{run.order}, {run.title}")


def class_row(
    order: str,
    runs: list[PlannedRun],
    times: dict[tuple[str, int], Times],
    inversions: dict[str, int],
) -> ClassRow:
    """Combine the measurements of one protocol: times by run and priority, inversions by run."""

    def variant(run: PlannedRun) -> Variant:
        of_run = {priority: each for (name, priority), each in times.items() if name == run.name}
        longest_ms = max(each.max_ms for each in of_run.values())
        return Variant(of_run[URGENT], of_run[BACKGROUND], inversions.get(run.name, 0), longest_ms)

    return ClassRow(order, *map(variant, runs))
