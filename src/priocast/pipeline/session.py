"""The Spark session; only this module creates one.

A session is quiet: the output of Java and Spark goes to a log beside its scratch files. It is read only if
Spark does not start, for the reason, and kept only if Spark ends in the middle of its work. A session writes
nothing else outside its scratch directory.

Spark itself reads the settings of users, from `spark-defaults.conf` in the directory SPARK_CONF_DIR; the ones
here take precedence.
"""

import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from priocast.core.errors import InvalidOption, JavaMissing, SparkEnded
from priocast.pipeline.executor_watch import watched_executors
from priocast.pipeline.java import find_java_home
from priocast.pipeline.java_process import how_spark_ended, stop
from priocast.pipeline.master_probe import check_reachable

LOCAL = "local[*]"
_SHUFFLE_PARTITIONS = 4
#: Java compiles the large methods that Spark generates, too (half the time for those). Without the optimising
#: compiler it reserves 48 MB for all compiled code, and ends when they are full: the checks of 100 runs with
#: all kinds of views take 59 MB.
_JAVA_OPTIONS = "-Xss16m -XX:-DontCompileHugeMethods -XX:ReservedCodeCacheSize=240m"
_JAVA_OPTIONS_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_JAVA_OPTIONS_LARGE = "-XX:+UseParallelGC"
#: The optimising compiler costs more than it saves for small traces: a verification of 1.4 million rows took
#: 36 s of processor time without it and 50 s with it. Once warm, its steps took 27 s and 15 s: from
#: about three million rows on, it should pay.
_ROWS_LARGE_MIN = 3_000_000
#: Two checks run at once. The tests used up to 1.2 GB (jstat), and once a Java process with a limit of 2 GB
#: ended without an error message.
LOCAL_MEMORY = "4g"
_ON_THIS_MACHINE = re.compile(r"local|spark://(127\.|localhost:)")
#: Spark can plan a job anew after each of its stages. In processor time, the checks of 340,000 rows took 12 s
#: with that and 14 s without it; three steps of those of 30 damaged runs, with 7,600 rows, 45 s and 28 s.
#: Small tables are not worth several partitions either: the checks of 23 such runs took 43 s with four, and
#: 37 s with one.
_ROWS_REPLANNED_MIN = 200_000
#: What a task keeps must fit into its part of the memory, however long the trace is.
_ROWS_PER_PARTITION = 2_000_000
#: A row takes about ten bytes in a segment: what Spark reads in one task by default would be 13 million rows.
_BYTES_PER_TASK = 8 * 2**20
_BYTES_PER_FILE = 256 * 2**10
#: Each table that is joined by a hash takes at least a page: by default 64 MB, however small it is.
_PAGE = "4m"
#: Spark keeps the last 100 classes that it generated, and a verification has more: every pass in a session
#: generated and compiled them all again. For three million deliveries the second and third took 49 and
#: 46 s of processor time with 100, and 33 and 24 s with this.
_GENERATED_CLASSES = 2_000
#: A small table is sent to all tasks when it is complete. Spark gives up after 300 s, although it is at work:
#: the verification of 200 traces did, on a machine that others kept busy.
_BROADCAST_SECONDS = 24 * 60 * 60
_DEFAULTS = "spark-defaults.conf"
#: The first error that has a reason: the Kubernetes client's own text has none, its cause follows.
_REASON = re.compile(r"(?:Exception|Error): (?!An error has occurred)(.+)")


@contextmanager
def spark_session(master: str = LOCAL, rows: int = 0) -> Iterator[SparkSession]:
    """Open a session on `master`, for tables of about so many rows.

    A session that is already open in this process is used, and left open.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    check_reachable(master)
    with tempfile.TemporaryDirectory(prefix="priocast-spark-", ignore_cleanup_errors=True) as scratch:
        log = Path(scratch) / "spark.log"
        session = _start(master, Path(scratch), rows, log)
        try:
            session.sparkContext.setLogLevel("ERROR")
            with watched_executors(session.sparkContext, master) as watch:
                try:
                    yield session
                except (PySparkException, Py4JError, ConnectionError) as error:
                    if how := watch.reason or how_spark_ended(error):
                        raise SparkEnded(
                            f"Spark ended in the middle of its work: {how}; log: {_keep(log)}"
                        ) from error
                    raise
        finally:
            stop(session.sparkContext)


def plan_for(session: SparkSession, rows: int) -> None:
    """Let the session plan its jobs for tables of about this size."""
    is_large = rows >= _ROWS_REPLANNED_MIN
    partitions = max(_SHUFFLE_PARTITIONS, rows // _ROWS_PER_PARTITION) if is_large else 1
    session.conf.set("spark.sql.adaptive.enabled", str(is_large).lower())
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))


def _keep(log: Path) -> Path:
    """Save a log from the removal of its scratch directory."""
    descriptor, name = tempfile.mkstemp(prefix="priocast-spark-", suffix=".log")
    os.close(descriptor)
    return Path(shutil.copy(log, name))


def _start(master: str, scratch: Path, rows: int, log: Path) -> SparkSession:
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = _settings(master, scratch, rows)
    try:
        with log.open("w") as output:
            # The first session of a process starts Java; later ones use the running one.
            gateway = SparkContext._gateway or launch_gateway(  # type: ignore[no-untyped-call]
                conf, {"stdout": output, "stderr": output}
            )
        return SparkSession(_without_signals(lambda: SparkContext(conf=conf, gateway=gateway)))
    except (PySparkException, Py4JError) as error:
        reason = _REASON.search(log.read_text()) or _REASON.search(str(error))
        if reason is None:
            raise JavaMissing(f"Spark could not start its Java in {os.environ['JAVA_HOME']}") from error
        raise InvalidOption(f"Spark cannot run on master {master!r}{_defaults()}: {reason[1]}") from error


def _defaults() -> str:
    """Which file has settings of the user for Spark, if there is one."""
    file = Path(os.environ.get("SPARK_CONF_DIR", "")) / _DEFAULTS
    return f" with the settings of {file}" if "SPARK_CONF_DIR" in os.environ and file.exists() else ""


def _without_signals(start: Callable[[], SparkContext]) -> SparkContext:
    """Start Spark, and keep the handler of Ctrl-C: Spark's calls Java in the middle of another call."""
    before = signal.getsignal(signal.SIGINT)
    context = start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return context


def _settings(master: str, scratch: Path, rows: int) -> SparkConf:
    by_size = _JAVA_OPTIONS_LARGE if rows >= _ROWS_LARGE_MIN else _JAVA_OPTIONS_SMALL
    settings = {
        "spark.app.name": "priocast",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.maxPartitionBytes": str(_BYTES_PER_TASK),
        "spark.buffer.pageSize": _PAGE,
        "spark.sql.codegen.cache.maxEntries": str(_GENERATED_CLASSES),
        "spark.sql.files.openCostInBytes": str(_BYTES_PER_FILE),
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # else flipped bits read as other rows
        "spark.sql.inMemoryColumnarStorage.compressed": "false",  # tables are read a few times, then dropped
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "50000",  # lists are short, 128 is few
        "spark.sql.broadcastTimeout": str(_BROADCAST_SECONDS),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} {by_size}",
    }
    if _ON_THIS_MACHINE.match(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": LOCAL_MEMORY,
            "spark.local.dir": str(scratch),
        }
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    return conf
