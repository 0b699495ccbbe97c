"""Where members that dropped out of a view went their own way, in orders that re-order queues.

There a message has its position when the application consumes it. A sender that nobody hears any more can
still hear the others: it decides where its own message goes and consumes it, and then what follows. The
others never learn of the decision. They continue without the message, so what follows it has lower positions
at them. The deliveries of such a member count up to the first message that it delivered alone: like that
message, what it delivered after it in this view binds nobody. Only deliveries of safe messages always count:
a member makes one only when all have received the decisions about everything before it.

A message that is for this member alone also counts as delivered alone, although its position may be that of
all: a trace does not show what those know that never deliver it.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.membership import GroupView
from priocast.trace.schema import ViewName

_KEY = ["run", "view_hash", "process"]
_NEVER = (1 << 63) - 1


def may_diverge(views_of: Mapping[str, Mapping[ViewName, GroupView]]) -> bool:
    """Whether a member dropped out of a view in which the order is decided when messages are consumed."""
    return any(
        view.is_ordered_by_consumption
        and view.survived
        and any(each.dropped_out for each in view.participations)
        for views in views_of.values()
        for view in views.values()
    )


def divergences(nonbinding: DataFrame, views: DataFrame) -> DataFrame:
    """The position, for each member that dropped out of such a view, of what it first delivered alone."""
    return (
        nonbinding.select(*_KEY, "position")
        .join(views.where("ordered_by_consumption").select("run", "view_hash"), ["run", "view_hash"])
        .groupBy(*_KEY)
        .agg(sf.min("position").alias("diverged_at"))
    )


def until_divergence(deliveries: DataFrame, diverged: DataFrame | None) -> DataFrame:
    """The deliveries that count: not those of members that had diverged, unless the message is safe."""
    if diverged is None:
        return deliveries
    return deliveries.join(sf.broadcast(diverged), _KEY, "left").where(_counts()).drop("diverged_at")


def unbound(irregular: DataFrame, diverged: DataFrame) -> DataFrame:
    """The irregular deliveries, of which those of members that had diverged bind nobody, unless safe."""
    return (
        irregular.join(sf.broadcast(diverged), _KEY, "left")
        .withColumn("binding", sf.col("binding") & _counts())
        .drop("diverged_at")
    )


def owing_until_divergence(participations: DataFrame, diverged: DataFrame) -> DataFrame:
    """Who was in which view; a member that diverged owes nothing from there on."""
    return (
        participations.join(diverged, _KEY, "left")
        .withColumn("owes_until", sf.least("owes_until", sf.coalesce("diverged_at", sf.lit(_NEVER))))
        .drop("diverged_at")
    )


def _counts() -> Column:
    """Whether a delivery counts that was made by a member that diverged at `diverged_at`, or never."""
    return sf.col("safe") | (sf.col("position") < sf.coalesce("diverged_at", sf.lit(_NEVER)))
