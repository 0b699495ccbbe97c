"""The Java process of a Spark session: how it ended, if before its time, and how to leave it behind."""

import signal
from contextlib import suppress
from subprocess import Popen, TimeoutExpired

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext

_SHUT_DOWN = "SparkContext was shut down"
_NO_MEMORY = ("SparkOutOfMemoryError", "java.lang.OutOfMemoryError")
_ENDING_SECONDS = 10.0


def how_spark_ended(error: Exception) -> str:
    """How Spark ended if that is what an error comes from, or an empty text."""
    if any(kind in str(error) for kind in _NO_MEMORY):
        return "a task needs more memory than it has; give it a cluster with more (--master)"
    if not isinstance(error, Py4JNetworkError | ConnectionError) and _SHUT_DOWN not in str(error):
        return ""
    process = _java()
    try:
        status = process.wait(_ENDING_SECONDS) if process else None
    except TimeoutExpired:
        status = None
    if status is None:
        return "the cluster stopped it" if _SHUT_DOWN in str(error) else ""
    if status == -signal.SIGKILL:
        return "its Java process was killed, as Linux does when the memory is used up"
    return f"its Java process ended with {signal.Signals(-status).name if status < 0 else status}"


def stop(context: SparkContext) -> None:
    """Stop a context; if its process is gone, let the next session of this process start another."""
    process = _java()
    if process is None or process.poll() is None:
        context.stop()
        return
    with suppress(Py4JError, ConnectionError):
        context.stop()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None


def _java() -> "Popen[bytes] | None":
    """The process that this one started for Spark, if it did."""
    return getattr(SparkContext._gateway, "proc", None)
