"""Notices that a standalone cluster gives a session no executor: Spark waits for one for ever, in silence.

Executors that work survive the loss of their master, and a master that is started again finds them. So only
a session without any executor whose master does not answer either is ended.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

from priocast.core.errors import InvalidOption
from priocast.pipeline.master_probe import check_reachable, is_standalone

_POLL_SECONDS = 2.0
_WARN_SECONDS = 20.0
_END_SECONDS = 60.0

log = logging.getLogger(__name__)


class ExecutorWatch:
    """Follows the executors of a session; `reason` says why its jobs were ended, if they were."""

    def __init__(self, context: SparkContext, master: str) -> None:
        self.reason = ""
        self._context = context
        self._master = master
        self._seen_at = time.monotonic()
        self._warned = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="priocast-executors", daemon=True)

    def start(self) -> None:
        """Begin to follow them."""
        self._thread.start()

    def stop(self) -> None:
        """The session ends."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        with suppress(Py4JError, ConnectionError):  # Java has ended: that is reported elsewhere
            while not self._stopped.wait(_POLL_SECONDS):
                self._look(time.monotonic())

    def _look(self, now: float) -> None:
        known = self._context._jsc.sc().getExecutorMemoryStatus()
        if known.size() > 1:  # one of them is the driver
            self._seen_at, self._warned = now, False
        without = now - self._seen_at
        if without >= _WARN_SECONDS and not self._warned:
            self._warned = True
            log.warning(
                "%s has given no executor for %.0f s: its workers are gone, or busy with other applications",
                self._master,
                without,
            )
        if without >= _END_SECONDS and not self._answers():
            self.reason = f"{self._master} and its executors have been gone for {without:.0f} s"
            self._context.cancelAllJobs()

    def _answers(self) -> bool:
        try:
            check_reachable(self._master)
        except InvalidOption:
            return False
        return True


@contextmanager
def watched_executors(context: SparkContext, master: str) -> Iterator[ExecutorWatch]:
    """Follow the executors of a session; those of other masters than a standalone one are left alone."""
    watch = ExecutorWatch(context, master)
    if not is_standalone(master):
        yield watch
        return
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
