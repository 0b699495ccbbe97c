"""The data pipeline on Apache Spark: checks from traces that every promise was kept, and measures the cost.

    from priocast.pipeline import study_runs
    result = study_runs(Path("runs"), out_html=Path("report.html"))

Importing this package imports pyspark, which takes seconds: import it where it is used, not at start-up.
"""

from priocast.pipeline.results import StudyResult, Verification
from priocast.pipeline.study import study_runs, verify_runs

__all__ = ["StudyResult", "Verification", "study_runs", "verify_runs"]
