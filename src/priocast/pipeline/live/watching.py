"""Follows the traces of running groups: a streaming query reads new segments, and a fold judges their rows.

Spark finds and reads the segments, wherever they are, and leaves the few columns that are needed of the few
events that matter. One row describes a batch of messages, so the rows of one group are few enough for one
process, this one, to fold them in the order in which things happened (decision 0048).
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from priocast.core.errors import UnreadableTrace
from priocast.core.violation import Violation
from priocast.pipeline.live.live_figures import LiveFigures, LiveMeasurement
from priocast.pipeline.live.live_order import LiveOrder
from priocast.pipeline.live.live_rows import COLUMNS, EVENTS, in_order
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.spark_types import spark_schema
from priocast.trace.columns import GROUP_EVENTS, MESSAGES, table_schema
from priocast.trace.schema import GroupEventRow, MessageRow

_TRIGGER_SECONDS = 0.5
_TABLES = (MESSAGES, GROUP_EVENTS)


class LiveUpdate(msgspec.Struct, frozen=True):
    """What a step of watching found: the figures of each run with new rows, and what is wrong."""

    figures: tuple[LiveFigures, ...]
    violations: tuple[Violation, ...]
    has_ended: bool


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


def watch_runs(
    path: Path, on_update: Callable[[LiveUpdate], bool], master: str = LOCAL, seconds: float | None = None
) -> None:
    """Follow the runs at `path` until `on_update` returns False, all members have stopped, or time is up.

    `path` is the directory of a run, or one that has such directories in it; it may be empty still.
    """
    traces, enough = LiveTraces(), threading.Event()

    def take(batch: DataFrame, _: int) -> None:
        update = traces.take(batch.toArrow().to_pylist())
        if not on_update(update) or update.has_ended:
            enough.set()

    with (
        spark_session(master) as spark,
        TemporaryDirectory(prefix="priocast-watch-", ignore_cleanup_errors=True) as checkpoint,
    ):
        query = (
            live_rows(spark, path)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{_TRIGGER_SECONDS} seconds")
            .start()
        )
        _wait(query, enough, seconds)


def _wait(query: StreamingQuery, enough: threading.Event, seconds: float | None) -> None:
    """Wait for the end of the query, and stop it."""
    waited = 0.0
    try:
        while query.isActive and not enough.is_set() and (seconds is None or waited < seconds):
            enough.wait(_TRIGGER_SECONDS)
            waited += _TRIGGER_SECONDS
    finally:
        query.stop()
    if (error := query.exception()) is not None and not enough.is_set():
        raise UnreadableTrace(f"the traces cannot be followed: {_first_line(error)}") from error


def _first_line(error: PySparkException) -> str:
    return str(error).strip().splitlines()[0]


def live_rows(spark: SparkSession, path: Path) -> DataFrame:
    """The rows of all segments at `path`, as they are written: a streaming DataFrame with a column `run`."""
    fields = {field.name: field for field in (*table_schema(GroupEventRow), *table_schema(MessageRow))}
    columns = spark_schema(pyarrow.schema([fields[name] for name in COLUMNS]))
    parts = sf.split("_metadata.file_path", "/")
    table, run = sf.element_at(parts, -2), sf.element_at(parts, -3)
    return (
        spark.readStream.schema(columns)
        .option("recursiveFileLookup", "true")
        .parquet(str(path))
        .where(table.isin(*_TABLES) & sf.col("event").isin(*EVENTS))
        .select(*COLUMNS, run.alias("run"))
    )
