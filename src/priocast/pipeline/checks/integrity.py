"""Integrity: a message is delivered at most once, only if it was broadcast, and only by members of the view."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from priocast.pipeline.checks.violation import names, violations
from priocast.pipeline.evidence import Evidence, deliveries_of, odd_messages
from priocast.pipeline.sources import MESSAGE_KEY, message_id
from priocast.trace.schema import DELIVERED


def find(evidence: Evidence) -> DataFrame:
    """Every way in which a delivery can be one that should not be."""
    return repeated(evidence).unionByName(never_broadcast(evidence)).unionByName(by_outsiders(evidence))


def repeated(evidence: Evidence) -> DataFrame:
    """Messages that a process delivered more than once."""
    found = (
        deliveries_of(evidence, odd_messages(evidence))
        .groupBy(*MESSAGE_KEY, "process")
        .agg(
            F.count(F.lit(1)).alias("times"),
            F.max("view").alias("view"),
            F.array_sort(F.collect_list("position")).alias("positions"),
        )
        .where(F.col("times") > 1)
    )
    return violations(
        found,
        view=F.col("view"),
        position=F.element_at("positions", -1),
        messages=F.array(message_id()),
        members=F.array("process"),
        detail=F.format_string(
            "%s delivered it %d times, at positions %s",
            "process",
            "times",
            F.array_join(F.col("positions").cast("array<string>"), ", "),
        ),
    )


def never_broadcast(evidence: Evidence) -> DataFrame:
    """Messages that were delivered but that no application handed over."""
    unknown = evidence.ledger.where((F.col("deliveries") > 0) & (F.col("broadcasts") == 0))
    found = (
        deliveries_of(evidence, unknown)
        .groupBy(*MESSAGE_KEY)
        .agg(
            F.min("view").alias("view"),
            F.min("position").alias("position"),
            F.collect_set("process").alias("members"),
        )
    )
    return violations(
        found,
        view=F.col("view"),
        position=F.col("position"),
        messages=F.array(message_id()),
        members=F.array_sort("members"),
        detail=F.concat(names("members"), F.lit(" delivered it, and nobody broadcast it")),
    )


def by_outsiders(evidence: Evidence) -> DataFrame:
    """Processes that delivered in a view that they are not in, each with its first such delivery."""
    inside = F.array_contains("members", F.col("process"))
    found = (
        evidence.events.where(F.col("event") == DELIVERED)
        .groupBy("run", "view", "process")
        .agg(F.min("position").alias("position"), F.sum("count").alias("times"))
        .join(evidence.views, ["run", "view"], "left")
        .where(~F.coalesce(inside, F.lit(False)))
    )
    return violations(
        found,
        view=F.col("view"),
        position=F.col("position"),
        messages=F.array(),
        members=F.array("process"),
        detail=F.format_string(
            "%s is not a member of view %d and delivered %d messages in it", "process", "view", "times"
        ),
    )
