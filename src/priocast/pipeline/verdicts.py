"""Verdicts: the result of every check for every run, as plain values."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.core.violation import Violation
from priocast.pipeline.checks.catalogue import CHECKS, STAMP_CHECK, Check, has_stamps
from priocast.pipeline.checks.service_catalogue import SERVICE_CHECKS
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import to_record

_CHECKS_AT_ONCE = 2
EXAMPLES_MAX = 10
_LOCATED = ("view", "coordinator", "position", "messages", "members", "summary")


@dataclass(frozen=True)
class Verdict:
    """Whether one guarantee holds in one run; `examples` are its first violations.

    It is not `decidable`, and does not hold, if it is about clocks that cannot be compared.
    """

    run: str
    guarantee: str
    statement: str
    promised: bool
    decidable: bool
    examined: int
    unit: str
    violations: int
    examples: tuple[Violation, ...]
    holds: bool


def judge(
    trace: TraceTables,
    examples_max: int = EXAMPLES_MAX,
    progress: Progress = ignore_progress,
    checks: Sequence[Check] | None = None,
) -> list[Verdict]:
    """Run all checks, or some of them, over all runs.

    Those of the qualities of service, and of stamps, are for the runs in which there are any.

    Each check is a separate job, and two run at a time: one job for all of them plans anew after each of its
    many stages and took 11 s where this took 7 (3 runs of 200,000 deliveries, warm, 2 cores).
    """

    def run_check(check: Check) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in first_of_each(check.find(trace), examples_max).collect():
            found[row["run"]].append(row)
        progress(f"checked {check.guarantee}")
        return found

    if checks is None:
        of_stamps = [STAMP_CHECK] if any(has_stamps(trace, run) for run in trace.runs) else []
        checks = (*CHECKS, *of_stamps, *(SERVICE_CHECKS if trace.services is not None else ()))
    progress("checking", len(checks))
    with ThreadPoolExecutor(_CHECKS_AT_ONCE) as pool:
        found = dict(zip(checks, pool.map(run_check, checks), strict=True))
    return [
        _verdict(trace, run, check, found[check][run.name])
        for run in trace.runs
        for check in checks
        if (run.has_services or check not in SERVICE_CHECKS)
        and (check is not STAMP_CHECK or has_stamps(trace, run))
    ]


def first_of_each(violations: DataFrame, count_max: int) -> DataFrame:
    """The first violations of each run, with the `total` number of them.

    All are counted, and only the first are kept: in a damaged trace there may be millions.
    """
    in_order = sf.struct("view", "coordinator", "position", "messages", "members")
    located = sf.struct(*_LOCATED)
    first = sf.min_by(located, in_order, max(count_max, 1))
    return (
        violations.groupBy("run")
        .agg(sf.count(sf.lit(1)).alias("total"), sf.sort_array(first).alias("first"))
        .select("run", "total", sf.inline("first"))
        .orderBy("run")
    )


def _verdict(trace: TraceTables, run: StoredRun, check: Check, rows: list[Row]) -> Verdict:
    decidable = check.decidable(trace, run)
    return Verdict(
        run=run.name,
        guarantee=check.guarantee,
        statement=check.statement,
        promised=check.promised(trace, run),
        decidable=decidable,
        examined=check.examined(trace, run),
        unit=check.unit,
        violations=rows[0]["total"] if rows else 0,
        examples=tuple(to_record(check.guarantee, row) for row in rows),
        holds=decidable and not rows,
    )
