"""Judges the messages of a run that have a quality of service, from its rows."""

from collections.abc import Collection, Iterable

from priocast.core.quality import QualityKind
from priocast.core.violation import Violation
from priocast.simulation.checkers.service_history import ServiceHistory
from priocast.simulation.checkers.service_set import service_checkers
from priocast.simulation.trace_observer import TraceObserver
from priocast.trace.schema import TraceRow


def judge_services(
    rows: Iterable[TraceRow],
    precision_ns: int,
    kinds: Collection[QualityKind] | None = None,
    *,
    run: str = "",
) -> list[Violation]:
    """What is broken of the promises of each quality.

    With `kinds`, every guarantee is looked for in the messages of these qualities, promised or not.
    """
    observer = TraceObserver(run)
    history = ServiceHistory()
    observer.add([history])
    now = 0
    for row in rows:
        observer.emit(row)
        now = row.time_ns
    for checker in service_checkers(observer.report, history, precision_ns, kinds):
        checker.finish(now)
    return observer.violations
