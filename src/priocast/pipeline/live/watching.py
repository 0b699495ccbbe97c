"""Follows the traces of running groups: a streaming query reads new segments, and a fold judges their rows.

Spark finds and reads the segments, wherever they are, and leaves the few columns that are needed of the few
events that matter. One row describes a batch of messages, so the rows of one group are few enough for one
process, this one, to fold them in the order in which things happened (decision 0048).
"""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from priocast.core.errors import UnreadableTrace
from priocast.core.violation import Violation
from priocast.pipeline.java_process import how_spark_ended
from priocast.pipeline.live.live_figures import LiveFigures, LiveMeasurement
from priocast.pipeline.live.live_order import LiveOrder
from priocast.pipeline.live.live_rows import in_order
from priocast.pipeline.live.live_segments import LiveSegments, check_directory
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.storage_errors import explain_error
from priocast.trace.remote_directory import without_secrets

_TRIGGER_SECONDS = 0.5
_LAST_STEP_SECONDS = 60.0
_CAUSE = re.compile(r"Caused by: (.+)")
#: What Spark says between two steps, as opposed to before the first one.
_IDLE = "Waiting"


class LiveUpdate(msgspec.Struct, frozen=True):
    """What a step of watching found: the figures of each run with new rows, and what is wrong.

    The last update may have conflicts that are `undecided`: they are violations unless one of the two
    processes drops out of the view.
    """

    figures: tuple[LiveFigures, ...]
    violations: tuple[Violation, ...]
    has_ended: bool
    undecided: tuple[Violation, ...] = ()


class _LiveRun:
    """One run: its rows are judged and measured as they come."""

    def __init__(self, name: str) -> None:
        self.order = LiveOrder(name)
        self.measurement = LiveMeasurement(name)

    def take(self, rows: Sequence[Mapping[str, Any]]) -> list[Violation]:
        found: list[Violation] = []
        for row in in_order(rows):
            found += self.order.take(row)
            self.measurement.take(row)
        return [*found, *(self.order.end() if self.measurement.has_ended else self.order.settle())]


class LiveTraces:
    """All runs that are watched."""

    def __init__(self) -> None:
        self._runs: dict[str, _LiveRun] = {}

    @property
    def has_ended(self) -> bool:
        """Whether all members of all runs have stopped."""
        return bool(self._runs) and all(run.measurement.has_ended for run in self._runs.values())

    @property
    def spans_kept(self) -> int:
        """How many deliveries are kept for comparison with those that other members still owe."""
        return sum(run.order.spans_kept for run in self._runs.values())

    def end(self) -> LiveUpdate | None:
        """The update about what is undecided when watching ends, if anything is."""
        undecided = tuple(violation for run in self._runs.values() for violation in run.order.undecided)
        return LiveUpdate((), (), self.has_ended, undecided) if undecided else None

    def take(self, rows: Sequence[Mapping[str, Any]]) -> LiveUpdate:
        """Judge and measure new rows; each has the name of its `run`."""
        of_run: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            of_run[row["run"]].append(row)
        found: list[Violation] = []
        for name, new in of_run.items():
            found += self._runs.setdefault(name, _LiveRun(name)).take(new)
        figures = tuple(self._runs[name].measurement.take_slice() for name in of_run)
        return LiveUpdate(figures, tuple(found), self.has_ended)


class _Watch:
    """What one streaming query has found so far, and what ends it.

    Its steps run in a thread of Spark, which would print an exception with the stacks of Python and Java: it
    is kept as `failure` instead.
    """

    def __init__(self, segments: LiveSegments, on_update: Callable[[LiveUpdate], bool]) -> None:
        self.traces = LiveTraces()
        self.enough = threading.Event()
        self.is_time_up = False
        self.has_read = False
        self.failure: Exception | None = None
        self._segments = segments
        self._on_update = on_update

    def take(self, batch: DataFrame, _: int) -> None:
        """Judge the rows of a step."""
        if self.enough.is_set():
            return
        try:
            self._judge(batch)
        except Exception as error:
            if not self.enough.is_set():
                self.failure = error
                self.enough.set()

    def _judge(self, batch: DataFrame) -> None:
        update = self.traces.take(self._segments.take(batch))
        self.has_read = self.has_read or bool(update.figures)
        if not self._on_update(update) or update.has_ended or self.is_time_up:
            self.enough.set()


def watch_runs(
    location: str | Path,
    on_update: Callable[[LiveUpdate], bool],
    master: str = LOCAL,
    seconds: float | None = None,
) -> None:
    """Follow the runs at a location until `on_update` returns False, all members stopped, or time is up.

    The location is a path or URL, of a run or of a directory of runs; it may be empty still. When time is
    up, the step that is being read is finished. Raises if no rows were read by then.
    """
    shown = without_secrets(str(location))
    check_directory(str(location))
    with (
        spark_session(master) as spark,
        TemporaryDirectory(prefix="priocast-watch-", ignore_cleanup_errors=True) as checkpoint,
    ):
        segments = LiveSegments(spark, str(location))
        watch = _Watch(segments, on_update)
        query = (
            segments.rows()
            .writeStream.foreachBatch(watch.take)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{_TRIGGER_SECONDS} seconds")
            .start()
        )
        try:
            _wait(query, watch, seconds)
        finally:
            watch.enough.set()
            query.stop()
            if (last := watch.traces.end()) is not None:
                on_update(last)
        _raise_failure(shown, watch.failure or query.exception())
        segments.check_all()
    if not watch.has_read:
        raise UnreadableTrace(
            f"nothing was read from {shown}: no segment with deliveries or views was written to it in time"
        )


def _wait(query: StreamingQuery, watch: _Watch, seconds: float | None) -> None:
    """Wait until nothing more is to be read; a step that is being read when time is up is finished."""
    end = None if seconds is None else time.monotonic() + seconds
    while query.isActive and not watch.enough.is_set():
        left = _TRIGGER_SECONDS if end is None else end - time.monotonic()
        if left <= 0:
            break
        watch.enough.wait(min(left, _TRIGGER_SECONDS))
    watch.is_time_up = True
    end = time.monotonic() + _LAST_STEP_SECONDS
    while query.isActive and time.monotonic() < end and _is_in_step(query):
        if watch.enough.wait(_TRIGGER_SECONDS / 5):
            break


def _is_in_step(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"]) or not str(status["message"]).startswith(_IDLE)


def _raise_failure(location: str, error: Exception | None) -> None:
    """Raise what ended a query as an error of one line."""
    if not isinstance(error, PySparkException | Py4JError) or how_spark_ended(error):
        if error is not None:
            raise error
        return
    text = str(error)
    if (found := explain_error(location, text)) is not None:
        raise found from error
    causes = _CAUSE.findall(text) or text.strip().splitlines()
    raise UnreadableTrace(f"{location} cannot be followed: {causes[-1]}") from error
