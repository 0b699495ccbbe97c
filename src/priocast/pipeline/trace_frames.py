"""The tables of recorded runs as DataFrames by name, for notebooks and for export.

    from priocast.pipeline import open
    tables = open("runs", spark)
    tables["deliveries"].groupBy("run", "process").count().show()

Nothing is computed until a DataFrame is used, and nothing is kept in memory.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, StructType

from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import StoredRuns, message_id, messages, open_runs, process_id, read_batches
from priocast.trace.schema import DELIVERED, VIEW

_RUNS_SCHEMA = """run string, location string, group string, order string, prioritised boolean,
    starvation string, members array<string>, policy string, delivery string, clock string, seed long,
    events long"""

FRAMES = {
    "runs": "one row for each run: what its manifest says, and how many events it recorded",
    "views": "one row for each process and view that its application received",
    "group_events": "the table `group_events` of the trace",
    "messages": "the table `messages` of the trace: one row for each event of a batch",
    "services": "the table `services` of the trace",
    "deliveries": "one row for each message that each process delivered: `message`, `priority`, `position`",
}
"""The names of the tables and what they contain, the small ones first."""


class TraceFrames(Mapping[str, DataFrame]):
    """The tables of the runs at a location, by name.

    Those with `time_ns` also have `time`: the time of day by the clock of the process's machine, where it is
    known.
    """

    def __init__(self, stored: StoredRuns) -> None:
        self._stored = stored
        self._makers: dict[str, Callable[[], DataFrame]] = {
            "runs": self._runs,
            "views": self._views,
            "group_events": self._group_events,
            "messages": lambda: _with_time(stored.messages),
            "services": lambda: _with_time(stored.services),
            "deliveries": self._deliveries,
        }
        assert tuple(self._makers) == tuple(FRAMES)

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._makers:
            raise KeyError(f"there is no table {name!r}: choose among {', '.join(self._makers)}")
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def _runs(self) -> DataFrame:
        rows = []
        for run in self._stored.runs:
            of = run.manifest
            ordering = (of.group, of.order, of.prioritised, of.starvation, of.members)
            rows.append(
                (run.name, run.location, *ordering, of.policy, of.delivery, of.clock, of.seed, run.events)
            )
        return small_table(self._stored.spark, rows, _RUNS_SCHEMA)

    def _group_events(self) -> DataFrame:
        return _with_time(self._stored.group_events)

    def _views(self) -> DataFrame:
        return (
            self._group_events()
            .where(sf.col("event") == VIEW)
            .select(
                "run",
                process_id("member", "incarnation").alias("process"),
                "view",
                "coordinator",
                "position",
                "members",
                "orderer",
                "order",
                "starvation",
                "time_ns",
                "time",
            )
        )

    def _deliveries(self) -> DataFrame:
        batches = read_batches(self._stored, keep=("clock_offset_ns",)).where(sf.col("event") == DELIVERED)
        return _with_time(messages(batches, keep=("clock_offset_ns",))).select(
            "run",
            "process",
            message_id().alias("message"),
            "priority",
            "position",
            "view",
            "coordinator",
            "step",
            "time_ns",
            "time",
        )


def open_tables(location: str | Path, spark: SparkSession) -> TraceFrames:
    """The tables of the runs at a path or URL, read with this session."""
    return TraceFrames(open_runs(spark, location))


def as_text(frame: DataFrame) -> DataFrame:
    """A table without lists, structs and bytes, which CSV files cannot have: lists as texts with commas."""
    columns = []
    for field in frame.schema:
        column = sf.col(field.name)
        if isinstance(field.dataType, ArrayType):
            is_nested = isinstance(field.dataType.elementType, StructType)
            column = sf.to_json(column) if is_nested else sf.array_join(column, ",")
        elif isinstance(field.dataType, BinaryType):
            column = sf.hex(column)
        columns.append(column.alias(field.name))
    return frame.select(*columns)


def _with_time(rows: DataFrame) -> DataFrame:
    since_1970_us = ((sf.col("time_ns") + sf.col("clock_offset_ns")) / 1000).cast("long")
    return rows.withColumn("time", sf.timestamp_micros(since_1970_us))
