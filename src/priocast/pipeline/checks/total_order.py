"""Total order: processes that deliver two messages deliver them in the same order, in whichever views.

It is not checked pair by pair. Three things together imply it:

(a) a message has one place, a view and a position in it, wherever it is delivered: in all views, also in
    those that exist side by side;
(b) each process, through all its views, delivers at ever higher positions, by the order of its own steps;
(c) a place has one message.

Let p deliver m before n, and q deliver both. By (a) both have the same positions at p and at q; by (b) m's is
the lower one, and q delivers m first. (c) adds that two processes never fill one place with different
messages, and with it goes that no place is left open: between a view's first position and the last one
delivered in it, somebody delivered at each. What nobody delivered may leave a place open if it was not for
all, if it may repeat a client's request, or if the view is not `gapless`.

There is one exception to (a). In a primary group, what only those delivered in a view who then fell out of
it binds nobody, unless it is safe: those who went on may never have heard of it, and its sender submits it
again. If nobody went on or stayed, there is nobody of that kind, and everything binds.

The ledger knows (a) and (c) without looking at deliveries again: only views in doubt are searched. That a
message is missing at some members is for Agreement, and that views follow each other for View synchrony.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import names, together, violations
from priocast.pipeline.evidence import Evidence, rows_of
from priocast.pipeline.sources import MESSAGE_KEY, as_messages, message_id, view_id
from priocast.trace.schema import DELIVERED, RECEIVED, SENT

_VIEW = ("run", "view", "coordinator")
_VIEWS_SCHEMA = "run string, view_print long, first_position long, gapless boolean"


def find(evidence: Evidence) -> DataFrame:
    """Every place where the order is not one order."""
    parts = [steps_back(evidence.events)]
    doubtful = doubtful_views(evidence).collect()
    if doubtful:
        searched = evidence.spark.createDataFrame(doubtful, _VIEWS_SCHEMA)
        deliveries = evidence.deliveries.join(sf.broadcast(searched), ["run", "view_print"])
        parts += [conflicts(deliveries), unfilled(deliveries, evidence)]
    if evidence.odd is not None:
        parts.append(scattered(evidence.odd))
    return together(evidence, parts)


def doubtful_views(evidence: Evidence) -> DataFrame:
    """Views with odd messages, or whose messages do not fill the positions from the view's first on."""
    once = sf.count_distinct("position") == sf.count(sf.lit(1))
    filled = (sf.min("position") == sf.col("first_position")) & (
        sf.max("position") - sf.min("position") + 1 == sf.count(sf.lit(1))
    )
    known = evidence.views.select("run", "view_print", "first_position", "gapless")
    sparse = (
        evidence.ledger.where("deliveries > 0 and not odd")
        .join(known, ["run", "view_print"])
        .groupBy("run", "view_print", "first_position", "gapless")
        .agg((once & (filled | ~sf.col("gapless"))).alias("filled"))
        .where("not filled")
        .select("run", "view_print")
    )
    if evidence.odd is not None:
        sparse = sparse.unionByName(evidence.odd.select("run", "view_print")).distinct()
    return sparse.join(known, ["run", "view_print"], "left")


def conflicts(deliveries: DataFrame) -> DataFrame:
    """Positions at which more than one message was delivered, and who delivered which."""
    who = sf.concat(names("members"), sf.lit(" delivered "), sf.col("message"))
    found = (
        deliveries.withColumn("message", message_id())
        .groupBy(*_VIEW, "position", "message")
        .agg(sf.array_sort(sf.collect_set("process")).alias("members"))
        .withColumn("who", who)
        .groupBy(*_VIEW, "position")
        .agg(
            sf.array_sort(sf.collect_list("message")).alias("messages"),
            sf.array_sort(sf.array_distinct(sf.flatten(sf.collect_list("members")))).alias("members"),
            sf.array_sort(sf.collect_list("who")).alias("who"),
        )
        .where(sf.size("messages") > 1)
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.col("messages"),
        members=sf.col("members"),
        detail=sf.array_join("who", "; "),
    )


def scattered(odd: DataFrame) -> DataFrame:
    """Messages that were delivered in more than one place, and who delivered them where."""
    where = sf.concat(
        names("members"),
        sf.lit(" delivered it at position "),
        sf.col("position"),
        sf.lit(" of view "),
        view_id(),
    )
    found = (
        odd.where("binding")
        .groupBy(*MESSAGE_KEY, "view", "coordinator", "position")
        .agg(sf.array_sort(sf.collect_set("process")).alias("members"))
        .withColumn("where", where)
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.min(sf.struct("view", "coordinator", "position")).alias("place"),
            sf.array_sort(sf.array_distinct(sf.flatten(sf.collect_list("members")))).alias("members"),
            sf.array_sort(sf.collect_list("where")).alias("where"),
        )
        .where(sf.size("where") > 1)
        .select("*", "place.*")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("members"),
        detail=sf.array_join("where", "; "),
    )


def unfilled(deliveries: DataFrame, evidence: Evidence) -> DataFrame:
    """Positions that the order went past without anybody delivering there, and without a reason."""
    in_order = Window.partitionBy(*_VIEW).orderBy("position")
    due = sf.greatest(sf.lag("position").over(in_order) + 1, "first_position")
    gaps = (
        deliveries.where("gapless")
        .select(*_VIEW, "view_print", "first_position", "position")
        .distinct()
        .withColumn("due", due)
        .where(sf.col("position") > sf.col("due"))
    )
    if evidence.any("withheld") or evidence.any("unbound"):
        gaps = unexplained(gaps, evidence)
    return violations(
        gaps,
        position=sf.col("due"),
        messages=sf.array(),
        members=sf.array(),
        detail=sf.format_string(
            "position %d was due and nobody delivered there; the next is %d", "due", "position"
        ),
    )


def unexplained(gaps: DataFrame, evidence: Evidence) -> DataFrame:
    """Gaps that are wider than what messages can explain that all pass over.

    Packets say which positions those have. In a view in which nobody alone gives positions they need not, and
    any such message in the run explains any gap.
    """
    passed_over = evidence.without_place().where("special").select(*MESSAGE_KEY)
    by_nobody = evidence.views.where("orderer = ''").select("run", "view_print")
    excused = by_nobody.join(passed_over.select("run").distinct(), "run", "left_semi")
    packets = evidence.events.where(sf.col("event").isin(SENT, RECEIVED) & (sf.col("position") >= 0))
    placed = (
        as_messages(rows_of(packets, passed_over))
        .select("run", "view_print", sf.col("position").alias("placed"))
        .distinct()
    )
    inside = (sf.col("placed") >= sf.col("due")) & (sf.col("placed") < sf.col("position"))
    return (
        gaps.join(sf.broadcast(excused), ["run", "view_print"], "left_anti")
        .join(sf.broadcast(placed), ["run", "view_print"], "left")
        .groupBy(*_VIEW, "position", "due")
        .agg(sf.count_if(inside).alias("explained"))
        .where(sf.col("explained") < sf.col("position") - sf.col("due"))
    )


def steps_back(events: DataFrame) -> DataFrame:
    """Deliveries at a position that the process had already reached or passed, by the order of its steps."""
    before = Window.partitionBy("run", "process").orderBy("step").rowsBetween(Window.unboundedPreceding, -1)
    found = (
        events.where(sf.col("event") == DELIVERED)
        .withColumn("reached", sf.max(sf.col("position") + sf.col("count") - 1).over(before))
        .where(sf.col("position") <= sf.col("reached"))
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string("%s delivered it after it had reached position %d", "process", "reached"),
    )
