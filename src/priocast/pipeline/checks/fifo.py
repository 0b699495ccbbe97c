"""FIFO among equals: messages of one sender and level are delivered in the order of their numbers.

Checked once, on the agreed order, not for each process: Total order checks that processes follow that order,
and Agreement that they omit nothing that they owe. A sender is in one view at a time and its view numbers
increase, so its messages have one order by view and position even where views exist concurrently.

No number is left out, except

- a message that was not for all, or on behalf of a client (which may have asked twice), and that nobody
  delivered;
- a nonbinding one (see Total order): only members that dropped out of the view delivered it;
- in a partitionable group, where the sender changes from one view to another: it cannot know what the other
  side of a partition has ordered, and must not submit that again.

Nearly always the positions of a sender and level increase with its numbers, and no number is missing: only
where that is not so, the messages are sorted and compared one by one.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.increasing import not_increasing
from priocast.pipeline.process_history import DeliverySpan, TraceHistory
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import MESSAGE_KEY, STREAM_KEY, message_hash, message_id, process_id
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import union, violations
from priocast.trace.schema import ViewName

_STREAMS_SCHEMA = "stream_hash long"
_FIRST_VIEWS_SCHEMA = "run string, sender string, sender_incarnation long, view long, coordinator string"


def find(trace: TraceTables) -> DataFrame:
    """Messages that are not the next of their sender and level at their position in the order."""
    ordered = agreed_order(trace).withColumn("stream_hash", sf.xxhash64("sender_hash", "level"))
    apart = [run.name for run in trace.runs if not follow_positions(trace.histories[run.name])]
    streams = doubtful_streams(ordered.where(~sf.col("run").isin(apart))).collect()
    if not streams and not apart:
        return union(trace)
    doubtful = small_table(trace.spark, streams, _STREAMS_SCHEMA).withColumn("doubtful", sf.lit(True))
    searched = ordered.join(sf.broadcast(doubtful), "stream_hash", "left").where(
        sf.col("doubtful") | sf.col("run").isin(apart)
    )
    return out_of_order(searched.drop("doubtful", "stream_hash"), trace)


def follow_positions(history: TraceHistory) -> bool:
    """Whether what was delivered in later views has higher positions, so that positions alone are the order.

    Views that existed concurrently have no such order.
    """
    spans: dict[ViewName, list[DeliverySpan]] = defaultdict(list)
    for process in history.processes.values():
        for view, span in process.delivered.items():
            spans[view].append(span)
    ranges = [
        (view.number, min(span.position_first for span in of), max(span.position_last for span in of))
        for view, of in sorted(spans.items())
    ]
    return all(one[0] < other[0] and one[2] < other[1] for one, other in pairwise(ranges))


def doubtful_streams(ordered: DataFrame) -> DataFrame:
    """The streams that lack a number, or whose positions do not increase with their numbers."""
    return not_increasing(ordered, ["stream_hash"], sf.col("number"), sf.col("position"), gapless=True)


def out_of_order(ordered: DataFrame, trace: TraceTables) -> DataFrame:
    """The violations among these messages, which are all of their streams."""
    before = (
        Window.partitionBy(*STREAM_KEY)
        .orderBy("view", "position", "number")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    found = (
        ordered.withColumn("due", sf.coalesce(sf.max("number").over(before) + 1, sf.lit(0)))
        .withColumn("hash_before", sf.last("view_hash").over(before))
        .where(sf.col("number") != sf.col("due"))
    )
    if trace.any("withheld") or trace.any("nonbinding"):
        found = not_excused(found, trace)
    if not all(run.primary for run in trace.runs):
        found = not_between_views(found, trace)
    named = trace.views.select("run", "view_hash", "coordinator")
    early = sf.format_string("it was delivered before number %d, which was due", "due")
    late = sf.format_string("it was delivered after number %d", sf.col("due") - 1)
    return violations(
        found.join(named, ["run", "view_hash"], "left"),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array(process_id("sender", "sender_incarnation")),
        summary=sf.when(sf.col("number") > sf.col("due"), early).otherwise(late),
    )


def agreed_order(trace: TraceTables, keep: Sequence[str] = ()) -> DataFrame:
    """Every delivered message with its position: where all members delivered it, or else most of them.

    Of the other columns of the message table, those to `keep` are added.
    """
    ordered = [*MESSAGE_KEY, "sender_hash", "view", "view_hash", "position"]
    settled = trace.is_bound & ~sf.col("misplaced") & sf.col("view").isNotNull()
    has_one = sf.when(sf.col("irregular"), settled).otherwise(~sf.col("nonbinding"))
    regular = trace.messages.where((sf.col("deliveries") > 0) & has_one).select(*ordered, *keep)
    if trace.irregular is None:
        return regular
    others = trace.messages.where(sf.col("irregular") & ~settled)
    hashes = sf.broadcast(others.select(message_hash().alias("message_hash")))
    disputed = trace.irregular.where("binding").join(hashes, "message_hash", "left_semi")
    first_of_most = sf.struct("votes", -sf.col("view"), -sf.col("position"), "coordinator")
    voted = (
        disputed.groupBy(*ordered, "coordinator")
        .agg(sf.count(sf.lit(1)).alias("votes"))
        .groupBy(*MESSAGE_KEY, "sender_hash")
        .agg(sf.max_by(sf.struct("view", "view_hash", "position"), first_of_most).alias("agreed"))
        .select(*MESSAGE_KEY, "sender_hash", "agreed.*")
    )
    if keep:
        voted = voted.join(others.select(*MESSAGE_KEY, *keep), list(MESSAGE_KEY))
    return regular.unionByName(voted)


def not_excused(found: DataFrame, trace: TraceTables) -> DataFrame:
    """Those that are out of order even if the messages that need no position are counted."""
    excused = trace.may_lack_position().withColumnRenamed("number", "excused").drop("special")
    skipped = (sf.col("excused") >= sf.col("due")) & (sf.col("excused") < sf.col("number"))
    return (
        found.join(excused, list(STREAM_KEY), "left")
        .groupBy(found.columns)
        .agg(sf.count_if(skipped).alias("explained"))
        .where(sf.col("due") + sf.col("explained") != sf.col("number"))
        .drop("explained")
    )


def not_between_views(found: DataFrame, trace: TraceTables) -> DataFrame:
    """Those that are out of order even if a sender may lose messages between two views of a divided group."""
    first_views = []
    for run in trace.runs:
        if not run.primary:
            for process in trace.histories[run.name].processes.values():
                name, _, incarnation = process.id.rpartition("#")
                if process.views:
                    first_views.append((run.name, name, int(incarnation), *process.views[0].view))
    known = small_table(trace.spark, first_views, _FIRST_VIEWS_SCHEMA).select(
        "run", "sender", "sender_incarnation", sf.xxhash64("view", "coordinator").alias("first_hash")
    )
    changed = sf.coalesce("hash_before", "first_hash") != sf.col("view_hash")
    ahead = sf.col("number") > sf.col("due")
    return (
        found.join(sf.broadcast(known), ["run", "sender", "sender_incarnation"], "left")
        .where(~(sf.coalesce(sf.col("first_hash").isNotNull() & changed, sf.lit(False)) & ahead))
        .drop("first_hash")
    )
