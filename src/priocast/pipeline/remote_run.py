"""One recorded run that is not on this machine, read by Spark: to look at a few of its messages."""

from priocast.core.errors import InvalidInput
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.sources import open_runs
from priocast.pipeline.storage_errors import storage_errors
from priocast.trace.recorded_run import RecordedRun


def fetch_run(location: str, master: str = LOCAL) -> RecordedRun:
    """The run at a URL."""
    with storage_errors(location), spark_session(master) as spark:
        stored = open_runs(spark, location)
        if len(stored.runs) > 1:
            names = ", ".join(run.location for run in stored.runs[:5])
            raise InvalidInput(
                f"{location} contains {len(stored.runs)} runs: give one of them, such as {names}"
            )
        (run,) = stored.runs
        return RecordedRun(run.manifest, stored.messages.toArrow(), run.group_events)
