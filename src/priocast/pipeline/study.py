"""The pipeline in one call: open a session, check the runs, measure them, write the report.

The results are plain values; no DataFrame outlives the session.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from priocast.core.errors import UnreadableTrace
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report import write_report
from priocast.pipeline.results import StudyResult, Verification
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.sources import open_runs
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

_UNREAD_FILE = re.compile(r"\[FAILED_READ_FILE.*?reading file (\S+?)\.?\s")


def verify_runs(
    path: Path,
    master: str = LOCAL,
    examples_max: int = EXAMPLES_MAX,
    progress: Progress = ignore_progress,
) -> Verification:
    """Check every guarantee for the runs at `path`."""
    with open_trace(path, master, progress) as trace:
        verdicts = judge(trace, examples_max, progress)
    return Verification(trace.runs, trace.counts, tuple(verdicts))


def study_runs(
    path: Path,
    master: str = LOCAL,
    out_html: Path | None = None,
    progress: Progress = ignore_progress,
    weights: Sequence[WeightSample] = (),
) -> StudyResult:
    """Check and measure the runs at `path`; with `out_html`, write the report there, with these weights."""
    with open_trace(path, master, progress) as trace:
        verdicts = judge(trace, progress=progress)
        progress("measuring")
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
    return replace(result, report=write_report(result, path, out_html))


@contextmanager
def open_trace(path: Path, master: str, progress: Progress) -> Iterator[TraceTables]:
    """The runs at `path`, in a session of their own."""
    runs = open_runs(path)
    progress("starting Spark")
    try:
        with spark_session(master) as spark:
            progress("reading traces")
            with load_trace(spark, runs) as trace:
                yield trace
    except (PySparkException, Py4JJavaError) as error:
        unread = _UNREAD_FILE.search(str(error))
        if unread is None:
            raise
        raise UnreadableTrace(f"{path} contains a damaged file: Spark cannot read {unread[1]}") from error
