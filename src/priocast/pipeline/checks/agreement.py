"""Agreement: members that go on together from a view delivered the same messages in it.

To go on together is to be told of the same next view, or to stay in a final one (see `membership`). What one
of them delivered in the view, each of them did, unless it was not addressed, or took over a state that holds
it.

A member that fell out of the view (it crashed, left or was left behind) owes nothing after its own last
delivery there. Up to then it owes what all those delivered who went on or stayed: it stopped, but it skipped
nothing.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import is_addressed, names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.membership import FELL_OUT
from priocast.pipeline.sources import MESSAGE_KEY, message_id


def find(evidence: Evidence) -> DataFrame:
    """Messages that some of those who went on together delivered and others did not; only odd ones can be."""
    return together(evidence, [] if evidence.odd is None else [incomplete(evidence.odd, evidence)])


def incomplete(odd: DataFrame, evidence: Evidence) -> DataFrame:
    """The odd messages that not everybody who owed it delivered."""
    cut_off = sf.when(
        (sf.size("lacking") == 0) & (sf.col("final") | (sf.size("went_on_with") > 0)), sf.col("skipped_by")
    ).otherwise(sf.array().cast("array<string>"))
    found = (
        account(odd, evidence)
        .withColumn("missing", sf.array_sort(sf.concat(lacking_among_peers(), cut_off)))
        .where(sf.size("missing") > 0)
    )
    return report_missing(found)


def account(odd: DataFrame, evidence: Evidence) -> DataFrame:
    """For each odd message in each view: who `delivered` it, and who of those that could owe it did not.

    `went_on_with` has the ways on of those who delivered it, `lacking` those who went on or stayed without
    it, `skipped_by` those who fell out after they had delivered something behind it.
    """
    place = [*MESSAGE_KEY, "safe", "to", "view", "coordinator", "view_print"]
    delivered = odd.groupBy(place).agg(
        sf.min("position").alias("position"), sf.array_sort(sf.collect_set("process")).alias("delivered")
    )
    has = sf.array_contains("delivered", sf.col("process"))
    went_on = sf.col("onward") != FELL_OUT
    skipped = ~went_on & ~has & (sf.col("position") < sf.col("owes_until"))
    return (
        delivered.join(evidence.stays, ["run", "view_print"])
        .where(is_addressed() & (sf.col("owes_from") <= sf.col("position")))
        .groupBy(*place, "position", "delivered", "final")
        .agg(
            sf.collect_set(sf.when(went_on & has, sf.col("onward"))).alias("went_on_with"),
            sf.collect_list(sf.when(went_on & ~has, sf.struct("onward", "process"))).alias("lacking"),
            sf.collect_list(sf.when(skipped, sf.col("process"))).alias("skipped_by"),
        )
    )


def lacking_among_peers() -> Column:
    """Of `lacking`, those who went on together with one that has it."""
    peers = sf.filter("lacking", lambda member: sf.array_contains("went_on_with", member["onward"]))
    return sf.transform(peers, lambda member: member["process"])


def report_missing(found: DataFrame) -> DataFrame:
    """Violations by those who are `missing` where others `delivered`."""
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("missing"),
        detail=sf.concat(
            sf.lit("delivered by "), names("delivered"), sf.lit(" and not by "), names("missing")
        ),
    )
