"""What every check returns: violations, one row each, that say where to look."""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.evidence import Evidence

_SCHEMA = "run string, view long, position long, messages array<string>, members array<string>, detail string"


def violations(
    found: DataFrame, *, view: Column, position: Column, messages: Column, members: Column, detail: Column
) -> DataFrame:
    """Bring what a check found into the common form; what does not apply is null or empty."""
    return found.select(
        "run",
        view.cast("long").alias("view"),
        position.cast("long").alias("position"),
        messages.cast("array<string>").alias("messages"),
        members.cast("array<string>").alias("members"),
        detail.alias("detail"),
    )


def together(evidence: Evidence, parts: Iterable[DataFrame]) -> DataFrame:
    """All that the parts of a check found. Without a part there is nothing, and nothing to compute."""
    nothing = evidence.events.sparkSession.createDataFrame([], _SCHEMA)
    return reduce(DataFrame.unionByName, parts, nothing)


def names(members: str | Column) -> Column:
    """An array of names as a person writes it."""
    return sf.array_join(sf.array_sort(members), ", ")
