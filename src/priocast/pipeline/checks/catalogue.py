"""The checks by name. A new check is one module with `find`, and one entry here."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from pyspark.sql import DataFrame

from priocast.core.guarantees import AGREEMENT, FIFO_AMONG_EQUALS, INTEGRITY, PRIORITY, TOTAL_ORDER
from priocast.pipeline.checks import agreement, fifo, integrity, priority, total_order
from priocast.pipeline.evidence import Census, Evidence
from priocast.trace.schema import Manifest


@dataclass(frozen=True)
class Check:
    """One property: what it says, how much is examined in which unit, how, and which runs promise it."""

    property: str
    says: str
    unit: str
    examined: Callable[[Census], int]
    find: Callable[[Evidence], DataFrame]
    promised: Callable[[Manifest], bool]


def _always(_: Manifest) -> bool:
    return True


def _if_prioritised_by_one(manifest: Manifest) -> bool:
    return manifest.prioritised and manifest.orderer != ""


CHECKS = (
    Check(
        INTEGRITY,
        "delivered at most once, only if it was broadcast, only by members of the view",
        "deliveries",
        attrgetter("deliveries"),
        integrity.find,
        _always,
    ),
    Check(
        TOTAL_ORDER,
        "members that deliver two messages deliver them in the same order",
        "deliveries",
        attrgetter("deliveries"),
        total_order.find,
        _always,
    ),
    Check(
        AGREEMENT,
        "what one member of a view delivered, every member delivered",
        "messages",
        attrgetter("messages"),
        agreement.find,
        _always,
    ),
    Check(
        FIFO_AMONG_EQUALS,
        "messages of one sender and level are delivered in the order of their numbers",
        "messages",
        attrgetter("messages"),
        fifo.find,
        _always,
    ),
    Check(
        PRIORITY,
        "nothing leaves the ordering queue before a waiting message that ranks ahead of it",
        "queue entries",
        attrgetter("queue_entries"),
        priority.find,
        _if_prioritised_by_one,
    ),
)
