"""Runs a Python function on Spark's executors, and reports how much of it is done.

The executors of a cluster get this package's code from the driver, so that they run exactly what the driver
would run. Their Python must have what the package depends on.
"""

import re
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext, StatusTracker
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

Row = tuple[object, ...]
Work = Callable[[Iterable[int]], Iterable[Row]]
OnTasksDone = Callable[[int], None]

_POLL_SECONDS = 0.2
_CODE = "priocast.zip"


def on_executors(spark: SparkSession, count: int, tasks: int, work: Work, columns: StructType) -> DataFrame:
    """The rows that `work` yields for the numbers from 0 to `count`, as `tasks` tasks of neighbours.

    Rows rather than Arrow batches: Spark's functions on batches need pandas, on every executor.
    """
    numbers = spark.sparkContext.range(0, count, numSlices=max(1, min(tasks, count)))
    return spark.createDataFrame(numbers.mapPartitions(work), columns)


def ship_code(spark: SparkSession, scratch: Path) -> None:
    """Give the executors this package; those of a local master are on this machine and have it."""
    context = spark.sparkContext
    if re.match(r"local(\[|$)", context.master or ""):
        return
    archive = scratch / _CODE
    root = Path(__file__).parent.parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*.py")):
            file.write(path, Path("priocast") / path.relative_to(root))
    context.addPyFile(str(archive))


@contextmanager
def tasks_done(context: SparkContext, on_done: OnTasksDone) -> Iterator[None]:
    """Report several times a second how many tasks of the running jobs are done."""
    stopped = threading.Event()
    tracker = context.statusTracker()

    def poll() -> None:
        while not stopped.wait(_POLL_SECONDS):
            on_done(_completed(tracker))

    thread = threading.Thread(target=poll, name="priocast-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _completed(tracker: StatusTracker) -> int:
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
