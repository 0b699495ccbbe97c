"""The data pipeline on Apache Spark: proves from traces that the promises were kept, and measures their cost.

    from priocast.pipeline import study_runs
    outcome = study_runs(Path("runs"), out_html=Path("report.html"))

Importing this package imports pyspark: do so where it is used, not where a program starts.
"""

from priocast.pipeline.outcome import Outcome, Verification
from priocast.pipeline.study import study_runs, verify_runs

__all__ = ["Outcome", "Verification", "study_runs", "verify_runs"]
