"""Results as the pipeline produces them, without running it."""

from pipeline.sample_runs import play
from priocast.core.view_reason import Eviction, ViewReason
from priocast.core.violation import Violation
from priocast.membership.packets import Ordering
from priocast.pipeline.message_table import MessageCounts
from priocast.pipeline.results import StudyResult
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.tables.delivery_time import DeliveryTime
from priocast.pipeline.tables.inversions import Inversions
from priocast.pipeline.tables.membership import Attendance, Lane, Origin, ViewRecord
from priocast.pipeline.tables.queue_depth import QueueDepth
from priocast.pipeline.tables.throughput import Throughput
from priocast.pipeline.verdicts import Verdict
from priocast.trace.recorder import view_order

STRICT = view_order(Ordering("sequencer-ub", True, "none"))
MARKUP = "<script>alert('&')</script>"
FOUNDED = ViewReason(founded=True)
_SHARES = (0.0, 0.5, 0.99, 1.0)


def verdict(run: str, violations: int = 0, promised: bool = True, decidable: bool = True) -> Verdict:
    example = Violation(
        guarantee="Total order",
        summary=f"b#1 did it {MARKUP}",
        run=run,
        view="1@a#1",
        position=7,
        members=("b#1",),
        messages=("a#1/0/3",),
    )
    return Verdict(
        run=run,
        guarantee="Total order",
        statement="the same order everywhere",
        promised=promised,
        decidable=decidable,
        examined=1200,
        unit="deliveries",
        violations=violations,
        examples=(example,) * min(violations, 2),
        holds=decidable and not violations,
    )


def delivery_time(run: str, priority: int, scale_ms: float) -> DeliveryTime:
    curve = tuple((share, scale_ms * share) for share in _SHARES)
    return DeliveryTime(
        run,
        priority,
        100,
        scale_ms / 2,
        scale_ms / 4,
        scale_ms / 2,
        scale_ms / 1.5,
        scale_ms,
        scale_ms,
        curve,
    )


def views(run: str) -> list[ViewRecord]:
    """Member c was evicted, and d joined."""
    founded = Origin("", ("a#1", "b#1", "c#1"))
    continued = Origin("1@a#1", ("a#1", "b#1"))
    return [
        ViewRecord(
            run, "1@a#1", founded.processes, "a#1", STRICT, FOUNDED, 0.0, 0.01, (founded,), 1700, None
        ),
        ViewRecord(
            run,
            "2@a#1",
            ("a#1", "b#1", "d#1"),
            "a#1",
            STRICT,
            ViewReason(joined=("d",), evicted=(Eviction("c", "fault", MARKUP),)),
            1.2,
            1.25,
            (Origin("", ("d#1",)), continued),
            90,
            41.5,
        ),
    ]


def lanes(run: str) -> list[Lane]:
    both = (Attendance("1@a#1", 0.0, 1.2), Attendance("2@a#1", 1.2, 2.0))
    return [
        Lane(run, "a#1", both, (), 2.0, None),
        Lane(run, "b#1", both, (), 1.9, "left"),
        Lane(run, "c#1", both[:1], (), 0.9, ""),
        Lane(run, "d#1", both[1:], (1.4,), 2.0, None),
    ]


def result(*runs: str, violations: int = 0) -> StudyResult:
    return StudyResult(
        runs=tuple(StoredRun(f"runs/{run}", play(run=run, ticks=1).manifest, (), 5000) for run in runs),
        counts=tuple(
            MessageCounts(run, level, 10, 10, 40, 0, 10, *[0] * 12) for run in runs for level in (32, 224)
        ),
        verdicts=tuple(verdict(run, violations) for run in runs),
        delivery_times=tuple(
            delivery_time(run, level, 900.0 / (level + 1)) for run in runs for level in (224, 32)
        ),
        throughputs=tuple(Throughput(run, "b#1", 812.4, 0.1, (700.0, 900.0)) for run in runs),
        queue_depths=tuple(QueueDepth(run, "a#1", 0.1, (3, 90)) for run in runs),
        inversions=tuple(Inversions(run, 224, 10, 4, 9, 3) for run in runs),
        views=tuple(record for run in runs for record in views(run)),
        lanes=tuple(lane for run in runs for lane in lanes(run)),
    )
