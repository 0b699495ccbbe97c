"""Agreement: what one member of a view delivered, every member delivered.

A member that did not come along into the next view (it crashed or left) owes the group nothing of the tail
of its last one.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import MESSAGE_KEY, message_id


def find(evidence: Evidence) -> DataFrame:
    """Messages that some members of the view delivered and others did not; only odd ones can be such."""
    parts = [incomplete(evidence)] if any(counted.odd for counted in evidence.census) else []
    return together(evidence, parts)


def incomplete(evidence: Evidence) -> DataFrame:
    """The odd messages that not every member who owed it delivered."""
    found = (
        evidence.deliveries_of(evidence.ledger.where("odd"))
        .groupBy(*MESSAGE_KEY, "view")
        .agg(sf.min("position").alias("position"), sf.collect_set("process").alias("delivered"))
        .join(evidence.views, ["run", "view"])
        .withColumn("missing", sf.array_except("stayed", "delivered"))
        .where(sf.size("missing") > 0)
    )
    return violations(
        found,
        view=sf.col("view"),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("missing"),
        detail=sf.concat(
            sf.lit("delivered by "), names("delivered"), sf.lit(" and not by "), names("missing")
        ),
    )
