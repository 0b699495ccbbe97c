"""Agreement: what one member of a view delivered, every member delivered.

A member that did not come along into the next view (it crashed or left) owes the group nothing of the tail
of its last one.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from priocast.pipeline.checks.violation import names, violations
from priocast.pipeline.evidence import Evidence, deliveries_of, odd_messages
from priocast.pipeline.sources import MESSAGE_KEY, message_id


def find(evidence: Evidence) -> DataFrame:
    """Messages that some members of the view delivered and others did not."""
    found = (
        deliveries_of(evidence, odd_messages(evidence))
        .groupBy(*MESSAGE_KEY, "view")
        .agg(F.min("position").alias("position"), F.collect_set("process").alias("delivered"))
        .join(evidence.views, ["run", "view"])
        .withColumn("missing", F.array_except("stayed", "delivered"))
        .where(F.size("missing") > 0)
    )
    return violations(
        found,
        view=F.col("view"),
        position=F.col("position"),
        messages=F.array(message_id()),
        members=F.col("missing"),
        detail=F.concat(
            F.lit("delivered by "), names("delivered"), F.lit(" and not by "), names("missing")
        ),
    )
