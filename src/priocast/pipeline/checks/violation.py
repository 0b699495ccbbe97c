"""What every check returns: violations, one row each, that say where to look."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf


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


def names(members: str | Column) -> Column:
    """An array of names as a person writes it."""
    return sf.array_join(sf.array_sort(members), ", ")
