"""The data pipeline on Apache Spark: checks from traces that every promise was kept, and measures the cost.

    from priocast.pipeline import study_runs
    result = study_runs("runs", out_html=Path("report.html"))

    from priocast import pipeline
    tables = pipeline.open("s3a://bucket/runs", spark)
    tables["deliveries"].groupBy("run", "process").count().show()

Importing this package imports pyspark, which takes seconds: import it where it is used, not at start-up.
"""

from priocast.pipeline.results import StudyResult, Verification
from priocast.pipeline.serialisability import HistoryVerdict, judge_history
from priocast.pipeline.study import study_runs, verify_runs
from priocast.pipeline.trace_frames import TraceFrames
from priocast.pipeline.trace_frames import open_tables as open  # noqa: A004 (called as pipeline.open)

__all__ = [
    "HistoryVerdict",
    "StudyResult",
    "TraceFrames",
    "Verification",
    "judge_history",
    "open",
    "study_runs",
    "verify_runs",
]
