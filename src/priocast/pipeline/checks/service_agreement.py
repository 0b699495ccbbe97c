"""Px8 to Px10: who delivers a message if anybody does."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.core.quality import QualityKind
from priocast.pipeline.checks.service_violations import of_messages
from priocast.pipeline.service_tables import ServiceTables, name_of


def unanimity(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px8: messages that some correct recipients delivered and others did not."""
    lacking = sf.array_sort(sf.array_except("due", "holders"))
    found = tables.messages.where(is_judged).withColumn("members", lacking)
    some = sf.size("members") < sf.size("due")
    return of_messages(found.where(some), sf.lit("not delivered by these recipients"))


def at_least(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px9: messages that fewer recipients delivered than their quality asks for, or not the named ones.

    Recipients that failed may have been among the n. Of `at_least(n)`, the sender is not one.
    """
    named = sf.filter("due", lambda process: sf.array_contains("names", name_of(process)))
    is_counted = (sf.col("kind") == QualityKind.AT_LEAST) & sf.col("count").isNotNull()
    wanted = (
        sf.when(is_counted, sf.array_except("due", sf.array("sender")))
        .when(sf.col("names").isNull(), sf.col("due"))
        .otherwise(named)
    )
    others = sf.array_except(sf.array_except("recipients", "due"), sf.array("sender"))
    by_count = sf.least(sf.col("count") - sf.size(others), sf.size("wanted"))
    found = (
        tables.messages.where(is_judged)
        .withColumn("wanted", wanted)
        .withColumn("members", sf.array_sort(sf.array_intersect("holders", "correct")))
        .withColumn("needed", sf.coalesce(by_count, sf.size("wanted")))
        .where(sf.size(sf.array_intersect("wanted", "holders")) < sf.col("needed"))
    )
    return of_messages(found, sf.format_string("delivered by these only, %d must", "needed"))


def best_effort(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px10: the same, if the sender did not fail."""
    return at_least(tables, is_judged & sf.array_contains("correct", sf.col("sender")))
