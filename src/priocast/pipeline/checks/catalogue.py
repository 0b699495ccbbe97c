"""The checks by name. A new check is one module with `find`, and one entry here."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from priocast.core.guarantees import (
    AGREEMENT,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    PRIORITY,
    PRIORITY_ACCOUNTING,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)
from priocast.pipeline.checks import (
    agreement,
    fifo,
    integrity,
    priority,
    priority_accounting,
    total_order,
    uniformity,
    view_synchrony,
)
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import Run


@dataclass(frozen=True)
class Check:
    """One property: what it says, how much is examined in which unit, how, and which runs promise it."""

    property: str
    says: str
    unit: str
    examined: Callable[[Evidence, Run], int]
    find: Callable[[Evidence], DataFrame]
    promised: Callable[[Evidence, Run], bool]


def _count(what: str) -> Callable[[Evidence, Run], int]:
    """How many of these the census has of a run."""

    def count(evidence: Evidence, run: Run) -> int:
        return sum(getattr(counted, what) for counted in evidence.census if counted.run == run.name)

    return count


def _count_views(evidence: Evidence, run: Run) -> int:
    return sum(len(life.told) for life in evidence.chronicles[run.name].lives.values())


def _always(_evidence: Evidence, _run: Run) -> bool:
    return True


def _if_by_rank(evidence: Evidence, run: Run) -> bool:
    return any(view.orders_by_rank or view.sends_by_rank for view in evidence.views_of[run.name].values())


def _if_consumed_by_priority(evidence: Evidence, run: Run) -> bool:
    return any(view.consumes_by_priority for view in evidence.views_of[run.name].values())


def _if_safe(evidence: Evidence, run: Run) -> bool:
    return run.safe or _count("safe")(evidence, run) > 0


CHECKS = (
    Check(
        INTEGRITY,
        "delivered at most once, only if it was broadcast, only by those in the view whom it is for",
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
        "members that go on together from a view delivered the same messages in it",
        "messages",
        _count("messages"),
        agreement.find,
        _always,
    ),
    Check(
        VIEW_SYNCHRONY,
        "processes agree on the views, and deliver each message in the view that it belongs to",
        "views told",
        _count_views,
        view_synchrony.find,
        _always,
    ),
    Check(
        UNIFORMITY,
        "a safe message that anyone delivered, even one that crashed, is nowhere missing",
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
        PRIORITY,
        "nothing leaves the ordering queue, or its sender's own, before what waits and ranks ahead of it",
        "queue entries",
        _count("queue_entries"),
        priority.find,
        _if_by_rank,
    ),
    Check(
        PRIORITY_ACCOUNTING,
        "what is less urgent goes first exactly if some member had consumed it when the other one came",
        "messages",
        _count("messages"),
        priority_accounting.find,
        _if_consumed_by_priority,
    ),
)
