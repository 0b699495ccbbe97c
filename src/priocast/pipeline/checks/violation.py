"""What every check returns: violations, one row each, that say where to look."""

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.pipeline.evidence import Evidence

_SCHEMA = (
    "run string, view long, coordinator string, position long, "
    "messages array<string>, members array<string>, detail string"
)


class Finding(NamedTuple):
    """A violation that was found in plain values; one of `_SCHEMA`."""

    run: str
    view: int | None
    coordinator: str | None
    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]
    detail: str


def violations(
    found: DataFrame, *, position: Column, messages: Column, members: Column, detail: Column
) -> DataFrame:
    """Bring what a check found, each with its `run` and `view`, into the common form; nothing may be null."""
    return found.select(
        "run",
        "view",
        "coordinator",
        position.cast("long").alias("position"),
        messages.cast("array<string>").alias("messages"),
        members.cast("array<string>").alias("members"),
        detail.alias("detail"),
    )


def together(
    evidence: Evidence, parts: Iterable[DataFrame] = (), findings: Iterable[Finding] = ()
) -> DataFrame:
    """All that the parts of a check found. Without a part there is nothing, and nothing to compute."""
    plain = list(findings)
    known = evidence.spark.createDataFrame(plain, _SCHEMA) if plain else _nothing(evidence.spark)
    return reduce(DataFrame.unionByName, parts, known)


def _nothing(spark: SparkSession) -> DataFrame:
    """No violation, known to the optimiser as none: to collect it takes no job (an empty list takes one)."""
    columns = (definition.split() for definition in _SCHEMA.split(", "))
    nulls = ", ".join(f"cast(null as {kind}) as {name}" for name, kind in columns)
    return spark.sql(f"select {nulls} where false")


def names(members: str | Column) -> Column:
    """An array of names as a person writes it."""
    return sf.array_join(sf.array_sort(members), ", ")


def is_addressed() -> Column:
    """Whether the member called `name` is one of those whom a message is `to`."""
    return (sf.col("to") == "") | sf.array_contains(sf.split("to", ","), sf.col("name"))
