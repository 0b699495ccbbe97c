"""The pipeline in one call: open a session, check the runs, measure them, write the report.

The results are plain values; no DataFrame outlives the session.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from priocast.pipeline.process_history import group_histories
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report import write_report
from priocast.pipeline.results import StudyResult, Verification
from priocast.pipeline.run_files import expected_rows
from priocast.pipeline.service_tables import ServiceTrace, load_services
from priocast.pipeline.session import LOCAL, plan_for, spark_session
from priocast.pipeline.sources import StoredRuns, open_runs
from priocast.pipeline.storage_errors import storage_errors
from priocast.pipeline.tables.delivery_time import delivery_times
from priocast.pipeline.tables.inversions import count_inversions
from priocast.pipeline.tables.membership import lanes, view_records
from priocast.pipeline.tables.queue_depth import queue_depths
from priocast.pipeline.tables.sender_times import sender_rates, sender_times
from priocast.pipeline.tables.service_times import service_times
from priocast.pipeline.tables.throughput import throughputs
from priocast.pipeline.tables.timeline import timelines
from priocast.pipeline.trace_tables import TraceTables, load_trace
from priocast.pipeline.verdicts import EXAMPLES_MAX, judge
from priocast.trace.weight_samples import WeightSample


def verify_runs(
    location: str | Path,
    master: str = LOCAL,
    examples_max: int = EXAMPLES_MAX,
    progress: Progress = ignore_progress,
) -> Verification:
    """Check every guarantee for the runs at a path or URL."""
    with open_trace(location, master, progress) as trace:
        verdicts = judge(trace, examples_max, progress)
    return Verification(trace.runs, trace.counts, tuple(verdicts))


def study_runs(
    location: str | Path,
    master: str = LOCAL,
    out_html: Path | None = None,
    progress: Progress = ignore_progress,
    weights: Sequence[WeightSample] = (),
) -> StudyResult:
    """Check and measure the runs at a path or URL; with `out_html`, write the report, with these weights."""
    with open_trace(location, master, progress) as trace:
        verdicts = judge(trace, progress=progress)
        progress("measuring", 1 if out_html else 0)
        over_time = timelines(trace)
        result = StudyResult(
            runs=trace.runs,
            counts=trace.counts,
            verdicts=tuple(verdicts),
            delivery_times=tuple(delivery_times(trace)),
            throughputs=tuple(throughputs(over_time)),
            queue_depths=tuple(queue_depths(over_time)),
            inversions=tuple(count_inversions(trace)),
            views=tuple(view_records(trace)),
            lanes=tuple(lanes(trace)),
            sender_times=tuple(sender_times(trace)),
            sender_rates=tuple(sender_rates(trace)),
            weights=tuple(weights),
            service_times=tuple(service_times(trace)),
        )
    if out_html is None:
        return result
    progress("writing the report")
    return replace(result, report=write_report(result, location, out_html))


@contextmanager
def open_trace(location: str | Path, master: str, progress: Progress) -> Iterator[TraceTables]:
    """The runs at a path or URL, in a session of their own."""
    with _open_runs(location, master, progress) as stored, load_trace(stored) as trace:
        yield trace


@contextmanager
def open_services(location: str | Path, master: str, progress: Progress) -> Iterator[ServiceTrace]:
    """What the runs at a path or URL did with qualities of service, in a session; nothing else is read.

    The files of a run are small, and a thousand of them are slow to open. A check of the total order reads
    those of all messages again.
    """
    with _open_runs(location, master, progress) as stored:
        plan_for(stored.spark, sum(run.events for run in stored.runs))
        with load_services(stored, group_histories(stored.runs)) as services:
            yield ServiceTrace(tuple(stored.runs), services)


@contextmanager
def _open_runs(location: str | Path, master: str, progress: Progress) -> Iterator[StoredRuns]:
    rows = expected_rows(str(location))
    progress("starting Spark", 3)
    with storage_errors(str(location)), spark_session(master, rows) as spark:
        progress("finding the runs")
        stored = open_runs(spark, location)
        progress("reading traces")
        yield stored
