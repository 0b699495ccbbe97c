"""Violations as a table: each check returns one, and its rows become `Violation` records again."""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from priocast.core.violation import Violation
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.trace_tables import TraceTables

_SCHEMA = (
    "run string, view long, coordinator string, position long, "
    "messages array<string>, members array<string>, summary string"
)


def violations(
    found: DataFrame, *, position: Column, messages: Column, members: Column, summary: Column
) -> DataFrame:
    """The findings of a check, each with its `run`, `view` and `coordinator`, as a table of violations."""
    return found.select(
        "run",
        "view",
        "coordinator",
        position.cast("long").alias("position"),
        messages.cast("array<string>").alias("messages"),
        members.cast("array<string>").alias("members"),
        summary.alias("summary"),
    )


def union(
    trace: TraceTables, tables: Iterable[DataFrame] = (), records: Iterable[Violation] = ()
) -> DataFrame:
    """Everything that the parts of a check found. If there is no part, nothing is computed."""
    known = small_table(trace.spark, map(_to_row, records), _SCHEMA)
    return reduce(DataFrame.unionByName, tables, known)


def _to_row(violation: Violation) -> tuple[object, ...]:
    number, _, coordinator = violation.view.partition("@")
    view = (int(number), coordinator) if number else (None, None)
    found = (violation.position, violation.messages, violation.members, violation.summary)
    return (violation.run, *view, *found)


def to_record(guarantee: str, row: Row) -> Violation:
    """A row of the table as a record."""
    return Violation(
        guarantee=guarantee,
        summary=row["summary"],
        run=row["run"],
        view="" if row["view"] is None else f"{row['view']}@{row['coordinator']}",
        position=row["position"],
        members=tuple(row["members"]),
        messages=tuple(row["messages"]),
    )


def names(members: str | Column) -> Column:
    """An array of names as text."""
    return sf.array_join(sf.array_sort(members), ", ")


def is_recipient() -> Column:
    """Whether the member called `name` is a recipient of the message."""
    return (sf.col("to") == "") | sf.array_contains(sf.split("to", ","), sf.col("name"))
