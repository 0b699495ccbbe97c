"""Findings of the checks of the qualities of service as violations."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.violations import violations


def of_messages(found: DataFrame, summary: Column) -> DataFrame:
    """Messages with the `members` that break a promise; those without any are left out."""
    return violations(
        found.where(sf.size("members") > 0),
        position=sf.lit(None),
        messages=sf.array("message"),
        members=sf.col("members"),
        summary=summary,
    )


def of_deliveries(found: DataFrame) -> DataFrame:
    """Deliveries with a `reason` why they break a promise; those without one are left out."""
    return violations(
        found.where(sf.col("reason").isNotNull()),
        position=sf.lit(None),
        messages=sf.array("message"),
        members=sf.array("process"),
        summary=sf.concat("process", sf.lit(" delivers "), "message", sf.lit(", "), "reason"),
    )
