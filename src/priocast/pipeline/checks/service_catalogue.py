"""The checks of the qualities of service, by guarantee (Px4 to Px13).

Each judges the messages of the qualities that promise its guarantee. A run in which no message has a quality
of service says nothing about them.
"""

from collections import defaultdict
from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

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
from priocast.core.service_promises import promising
from priocast.pipeline.checks.catalogue import Check
from priocast.pipeline.checks.service_agreement import at_least, best_effort, unanimity
from priocast.pipeline.checks.service_causal_order import causal_order
from priocast.pipeline.checks.service_order import fifo_order, total_order
from priocast.pipeline.checks.service_validity import accessibility, delivery, non_triviality, tightness
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.service_tables import ServiceTables
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.trace_tables import TraceTables

FindServices = Callable[[ServiceTables, Column], DataFrame]

FINDERS: dict[str, tuple[str, FindServices]] = {
    NON_TRIVIALITY: ("what is delivered was sent, unit by unit", non_triviality),
    ACCESSIBILITY: ("a message is delivered once, by a recipient that did not reject it", accessibility),
    DELIVERY: (
        "a correct sender gets a receipt, and who answered that it has the message delivers it",
        delivery,
    ),
    TIGHTNESS: ("all recipients deliver at the same time, within the stated bound", tightness),
    UNANIMITY: ("what one correct recipient delivers, all correct recipients deliver", unanimity),
    AT_LEAST: (
        "if a correct recipient delivers, as many do as the quality asks for, or the named ones",
        at_least,
    ),
    BEST_EFFORT: ("the same, if the sender does not fail", best_effort),
    SERVICE_TOTAL_ORDER: ("processes deliver messages of one quality in the same order", total_order),
    SERVICE_CAUSAL_ORDER: ("no message is delivered after one that it may have caused", causal_order),
    SERVICE_FIFO_ORDER: ("messages of one sender are delivered in the order of sending", fifo_order),
}
"""What each guarantee says, and which function finds its violations among the messages that are judged."""


def _check(guarantee: str, statement: str, find: FindServices) -> Check:
    kinds = promising(guarantee)

    def examined(trace: TraceTables, run: StoredRun) -> int:
        return trace.services.count(run.name, kinds) if trace.services is not None else 0

    def find_promised(trace: TraceTables) -> DataFrame:
        assert trace.services is not None, "only runs with qualities of service are checked"
        return find(trace.services, sf.col("kind").isin(*kinds))

    return Check(
        guarantee,
        statement,
        "messages with a quality",
        examined,
        find_promised,
        lambda trace, run: examined(trace, run) > 0,
        lambda _trace, run: guarantee != TIGHTNESS or run.has_one_clock,
    )


def broken_promises(services: ServiceTables, progress: Progress = ignore_progress) -> dict[str, set[str]]:
    """The guarantees of the qualities that do not hold, by run; runs without any are not among them."""
    broken: dict[str, set[str]] = defaultdict(set)
    for guarantee, (_, find) in FINDERS.items():
        found = find(services, sf.col("kind").isin(*promising(guarantee)))
        for row in found.select("run").distinct().collect():
            broken[row["run"]].add(guarantee)
        progress(f"checked {guarantee}")
    return broken


SERVICE_CHECKS = tuple(_check(guarantee, *finder) for guarantee, finder in FINDERS.items())
