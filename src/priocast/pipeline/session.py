"""The Spark session; only this module creates one.

A session is quiet: the output of Java and Spark goes to a log beside its scratch files, and is read only if
Spark does not start, for the reason. A session writes nothing outside its scratch directory.
"""

import os
import re
import signal
import socket
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

from priocast.core.errors import InvalidOption, JavaMissing
from priocast.pipeline.java import find_java_home

LOCAL = "local[*]"
_SHUFFLE_PARTITIONS = 4
# For short runs on one machine: compile quickly rather than well (a quarter less processor time for three
# runs of 200,000 deliveries), and compile the large methods that Spark generates (half the time for those).
_JAVA_OPTIONS = "-Xss16m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-DontCompileHugeMethods"
#: Two checks run at once. The tests used up to 1.2 GB (jstat), and once a Java process with a limit of 2 GB
#: ended without an error message.
_LOCAL_MEMORY = "4g"
_MASTER_SECONDS = 5.0
_STANDALONE = re.compile(r"spark://(.+)")
_ON_THIS_MACHINE = re.compile(r"local|spark://(127\.|localhost:)")
#: Spark can plan a job anew after each of its stages. In processor time, the checks of 340,000 rows took 12 s
#: with that and 14 s without it; three steps of those of 30 damaged runs, with 7,600 rows, 45 s and 28 s.
_ROWS_REPLANNED_MIN = 100_000
_REASON = re.compile(r"(?:Exception|Error): (.+)")


@contextmanager
def spark_session(master: str = LOCAL) -> Iterator[SparkSession]:
    """Open a session on `master`; a session that is already open in this process is used, and left open."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    _check_reachable(master)
    with tempfile.TemporaryDirectory(prefix="priocast-spark-", ignore_cleanup_errors=True) as scratch:
        context = _start(master, Path(scratch))
        try:
            context.setLogLevel("ERROR")
            yield SparkSession(context)
        finally:
            context.stop()


def _check_reachable(master: str) -> None:
    """Raise if nothing listens at the address of a cluster: Spark would try for a minute."""
    match = _STANDALONE.fullmatch(master)
    addresses = match[1].split(",") if match else []
    reasons = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidOption(f"{master!r} is not the URL of a master: write spark://HOST:PORT")
        try:
            socket.create_connection((host, int(port)), _MASTER_SECONDS).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {error}")
    if addresses and len(reasons) == len(addresses):
        raise InvalidOption(f"no Spark master can be reached ({'; '.join(reasons)})")


def plan_for(session: SparkSession, rows: int) -> None:
    """Let the session plan its jobs for tables of about this size."""
    session.conf.set("spark.sql.adaptive.enabled", str(rows >= _ROWS_REPLANNED_MIN).lower())


def _start(master: str, scratch: Path) -> SparkContext:
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = _settings(master, scratch)
    log = scratch / "spark.log"
    try:
        with log.open("w") as output:
            # The first session of a process starts Java; later ones use the running one.
            gateway = SparkContext._gateway or launch_gateway(  # type: ignore[no-untyped-call]
                conf, {"stdout": output, "stderr": output}
            )
        return _without_signals(lambda: SparkContext(conf=conf, gateway=gateway))
    except (PySparkException, Py4JError) as error:
        reason = _REASON.search(log.read_text()) or _REASON.search(str(error))
        if reason is None:
            raise JavaMissing(f"Spark could not start its Java in {os.environ['JAVA_HOME']}") from error
        raise InvalidOption(f"Spark cannot run on master {master!r}: {reason[1]}") from error


def _without_signals(start: Callable[[], SparkContext]) -> SparkContext:
    """Start Spark, and keep the handler of Ctrl-C: Spark's calls Java in the middle of another call."""
    before = signal.getsignal(signal.SIGINT)
    context = start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return context


def _settings(master: str, scratch: Path) -> SparkConf:
    settings = {
        "spark.app.name": "priocast",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
        "spark.sql.session.timeZone": "UTC",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # else flipped bits read as other rows
        "spark.sql.inMemoryColumnarStorage.compressed": "false",  # tables are read a few times, then dropped
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
    }
    if _ON_THIS_MACHINE.match(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": _LOCAL_MEMORY,
            "spark.local.dir": str(scratch),
        }
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    return conf
