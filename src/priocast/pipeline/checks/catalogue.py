"""The checks by guarantee: those of the total order. A new one is a module with `find`, and an entry here."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from priocast.core.guarantees import (
    AGREEMENT,
    CAUSAL_ORDER,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    PRIORITY,
    PRIORITY_ACCOUNTING,
    TIMESTAMP_ORDER,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)
from priocast.pipeline.checks import (
    agreement,
    causal_order,
    fifo,
    integrity,
    priority,
    priority_accounting,
    timestamp_order,
    total_order,
    uniformity,
    view_synchrony,
)
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.trace_tables import TraceTables


def _always(_trace: TraceTables, _run: StoredRun) -> bool:
    return True


@dataclass(frozen=True)
class Check:
    """One guarantee: its statement, what is examined and in which unit, how, and which runs promise it.

    `decidable` says whether the record of a run can show a violation at all.
    """

    guarantee: str
    statement: str
    unit: str
    examined: Callable[[TraceTables, StoredRun], int]
    find: Callable[[TraceTables], DataFrame]
    promised: Callable[[TraceTables, StoredRun], bool]
    decidable: Callable[[TraceTables, StoredRun], bool] = _always


def _count(what: str) -> Callable[[TraceTables, StoredRun], int]:
    """The sum of one of the message counts of a run."""

    def count(trace: TraceTables, run: StoredRun) -> int:
        return sum(getattr(counts, what) for counts in trace.counts if counts.run == run.name)

    return count


def _count_views(trace: TraceTables, run: StoredRun) -> int:
    return sum(len(process.views) for process in trace.histories[run.name].processes.values())


def _if_queues_by_priority(trace: TraceTables, run: StoredRun) -> bool:
    views = trace.views_of[run.name].values()
    return any(view.orders_by_priority or view.sends_by_priority for view in views)


def _if_consumed_by_priority(trace: TraceTables, run: StoredRun) -> bool:
    return any(view.consumes_by_priority for view in trace.views_of[run.name].values())


def _if_safe(trace: TraceTables, run: StoredRun) -> bool:
    return run.safe or _count("safe")(trace, run) > 0


CHECKS = (
    Check(
        INTEGRITY,
        "a message is delivered at most once, only if it was broadcast, only by its recipients in the view",
        "deliveries",
        _count("deliveries"),
        integrity.find,
        _always,
    ),
    Check(
        TOTAL_ORDER,
        "processes that deliver two messages deliver them in the same order, in whichever views",
        "deliveries",
        _count("deliveries"),
        total_order.find,
        _always,
    ),
    Check(
        AGREEMENT,
        "members that continue together from a view delivered the same messages in it",
        "messages",
        _count("messages"),
        agreement.find,
        _always,
    ),
    Check(
        VIEW_SYNCHRONY,
        "processes agree on the views, and deliver each message in the view that it belongs to",
        "views received",
        _count_views,
        view_synchrony.find,
        _always,
    ),
    Check(
        UNIFORMITY,
        "a safe message that any process delivered, even one that crashed, is missing nowhere",
        "safe messages",
        _count("safe"),
        uniformity.find,
        _if_safe,
    ),
    Check(
        FIFO_AMONG_EQUALS,
        "messages of one sender and level are delivered in the order of their numbers",
        "messages",
        _count("messages"),
        fifo.find,
        _always,
    ),
    Check(
        CAUSAL_ORDER,
        "what a process broadcasts has a later position than everything that it had delivered",
        "messages",
        _count("messages"),
        causal_order.find,
        _always,
    ),
    Check(
        PRIORITY,
        "nothing leaves an ordering or sending queue while a message with a lower sort key waits there",
        "queue entries",
        _count("queue_entries"),
        priority.find,
        _if_queues_by_priority,
    ),
    Check(
        PRIORITY_ACCOUNTING,
        "a less urgent message goes first exactly if some member had consumed it when the other one arrived",
        "messages",
        _count("messages"),
        priority_accounting.find,
        _if_consumed_by_priority,
    ),
)

_WITH_STAMPS = "adaptive"


def has_stamps(trace: TraceTables, run: StoredRun) -> bool:
    """Whether any view of a run is ordered by slots, so that its deliveries have stamps."""
    return any(view.order.order == _WITH_STAMPS for view in trace.views_of[run.name].values())


STAMP_CHECK = Check(
    TIMESTAMP_ORDER,
    "stamps are unique and the same everywhere, and processes deliver in their order",
    "deliveries",
    _count("deliveries"),
    timestamp_order.find,
    has_stamps,
)
"""For runs that have stamps; the others say nothing about it."""
