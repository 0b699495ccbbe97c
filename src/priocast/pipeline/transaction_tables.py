"""A history as tables: its events, and one row for each transaction with its place in the order."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from priocast.core.errors import InvalidInput, UnreadableTrace
from priocast.trace.transaction_history import (
    FAIL,
    INFO,
    INVOKE,
    OK,
    HistoryEvent,
    read_event,
    settled_of,
    steps_of,
)

_EVENTS_SCHEMA = """index long, type string, process long, rank long,
    steps array<struct<kind: string, key: long, values: array<long>>>,
    settled array<struct<process: long, rank: long>>, error string"""
_PARTITIONS_MIN = 4
_EXCERPT = 120


def read_events(spark: SparkSession, path: Path) -> DataFrame:
    """The events of a history, one row for each; a line that is none has an `error`."""
    if not path.is_file():
        raise UnreadableTrace(f"there is no history at {path}")
    lines = spark.sparkContext.textFile(str(path.resolve()), _PARTITIONS_MIN)
    return spark.createDataFrame(lines.mapPartitions(_rows), _EVENTS_SCHEMA, verifySchema=False)


def _rows(lines: Iterable[str]) -> Iterator[tuple[object, ...]]:
    for line in lines:
        if not line.strip():
            continue
        try:
            event = read_event(line)
            yield (event.index, event.type, event.process, event.rank, _steps(event), settled_of(event), None)
        except InvalidInput as error:
            yield (None, None, None, None, None, None, f"{error}, in the line {line[:_EXCERPT]!r}")


def _steps(event: HistoryEvent) -> list[tuple[str, int, list[int]]]:
    return [] if event.process is None else [(*step,) for step in steps_of(event)]


def transactions(events: DataFrame) -> DataFrame:
    """One row for each transaction: when it was `invoked` and `answered` (by index), its outcome and place.

    `rank` is null if it had no effect and observed nothing. `problem` says why it cannot be judged.
    """
    of_process = Window.partitionBy("process").orderBy("index")
    clients = events.where("process is not null").withColumn("before", sf.lag("type").over(of_process))
    following = {
        f"next_{name}": sf.lead(name).over(of_process) for name in ("index", "type", "rank", "steps")
    }
    invoked = sf.col("type") == INVOKE
    out_of_turn = sf.when(invoked, sf.coalesce(sf.col("before").isin(INVOKE, INFO), sf.lit(False))).otherwise(
        sf.coalesce(sf.col("before") != INVOKE, sf.lit(True))
    )
    paired = clients.withColumns({**following, "out_of_turn": out_of_turn}).where(invoked | out_of_turn)
    known = sf.col("next_type").isin(OK, FAIL)
    found = paired.join(sf.broadcast(_settled(events)), "process", "left").select(
        "process",
        sf.col("index").alias("invoked"),
        sf.when(known, sf.col("next_index")).alias("answered"),
        sf.when(known, sf.col("next_type")).otherwise(INFO).alias("outcome"),
        sf.when(known, sf.col("next_rank")).otherwise(sf.col("settled_rank")).alias("rank"),
        sf.when(known, sf.col("next_steps")).otherwise(sf.col("steps")).alias("steps"),
        "is_settled",
        "out_of_turn",
    )
    return found.withColumn("problem", _problem()).drop("is_settled", "out_of_turn")


def _settled(events: DataFrame) -> DataFrame:
    return events.select(sf.explode("settled").alias("of")).select(
        sf.col("of.process").alias("process"),
        sf.col("of.rank").alias("settled_rank"),
        sf.lit(True).alias("is_settled"),
    )


def _problem() -> Column:
    """Why a transaction cannot be judged: the history is not well formed, or has no witness for it."""
    no_place = (sf.col("outcome") == OK) & sf.col("rank").isNull()
    return (
        sf.when(sf.col("out_of_turn"), "is a second one at once, or an answer to none")
        .when(no_place, "has no :position: there is no witness")
        .when((sf.col("outcome") == INFO) & sf.col("is_settled").isNull(), "is unknown and not :settled")
    )
