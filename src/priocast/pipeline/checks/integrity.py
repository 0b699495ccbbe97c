"""Integrity: delivered at most once, only if it was broadcast, and only by members of the view."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import MESSAGE_KEY, message_id
from priocast.trace.schema import DELIVERED


def find(evidence: Evidence) -> DataFrame:
    """Every way in which a delivery can be one that should not be.

    What an outsider delivers, or a member repeats, is odd; the ledger has counted whether there is any.
    """
    parts = []
    if any(counted.odd for counted in evidence.census):
        parts += [repeated(evidence), by_outsiders(evidence)]
    if any(counted.unknown for counted in evidence.census):
        parts.append(never_broadcast(evidence))
    return together(evidence, parts)


def repeated(evidence: Evidence) -> DataFrame:
    """Messages that a process delivered more than once."""
    found = (
        evidence.deliveries_of(evidence.ledger.where("odd"))
        .groupBy(*MESSAGE_KEY, "process")
        .agg(
            sf.count(sf.lit(1)).alias("times"),
            sf.max("view").alias("view"),
            sf.array_sort(sf.collect_list("position")).alias("positions"),
        )
        .where(sf.col("times") > 1)
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.element_at("positions", -1),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string(
            "%s delivered it %d times, at positions %s",
            "process",
            "times",
            sf.array_join(sf.col("positions").cast("array<string>"), ", "),
        ),
    )


def never_broadcast(evidence: Evidence) -> DataFrame:
    """Messages that were delivered but that no application handed over."""
    found = (
        evidence.deliveries_of(evidence.ledger.where("unknown"))
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.min("view").alias("view"),
            sf.min("position").alias("position"),
            sf.collect_set("process").alias("members"),
        )
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array_sort("members"),
        detail=sf.concat(names("members"), sf.lit(" delivered it, and nobody broadcast it")),
    )


def by_outsiders(evidence: Evidence) -> DataFrame:
    """Processes that delivered in a view that they are not in, each with its first such delivery."""
    inside = sf.array_contains("members", sf.col("process"))
    found = (
        evidence.events.where(sf.col("event") == DELIVERED)
        .groupBy("run", "view", "process")
        .agg(sf.min("position").alias("position"), sf.sum("count").alias("times"))
        .join(evidence.views, ["run", "view"], "left")
        .where(~sf.coalesce(inside, sf.lit(False)))
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("position"),
        messages=sf.array(),
        members=sf.array("process"),
        detail=sf.format_string(
            "%s is not a member of view %d and delivered %d messages in it", "process", "view", "times"
        ),
    )
