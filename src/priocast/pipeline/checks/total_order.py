"""Total order: processes that deliver two messages deliver them in the same order, in whichever views.

Pairs are not compared. Three properties together imply it:

(a) a message has one position, in one view, wherever it is delivered: in all views, also in concurrent ones;
(b) each process, through all its views, delivers at increasing positions, by the order of its own steps;
(c) a position has one message.

Let p deliver m before n, and q deliver both. By (a) both have the same positions at p and at q; by (b) m's is
the lower one, and q delivers m first. (c) adds that two processes never deliver different messages at one
position. It includes that no position stays empty: from a view's first position to the last one delivered in
it, or known otherwise (the next view begins after it; a member that remained has it in a packet), some
process delivered at each. A message that nobody delivered may leave its position empty if it was not for all,
if it may repeat a client's request, or if the view is not `gapless`.

There is one exception to (a). In a primary group, a delivery is nonbinding if only members that then dropped
out of the view delivered the message there, unless it is safe: those that continued may never have received
it, and its sender submits it again. If nobody continued or remained, every delivery is binding. Where queues
are re-ordered, what such a member delivers after such a message in this view is nonbinding, too, and counts
neither for (a) nor for (c): see `pipeline/divergence.py`.

The message table shows (a) and (c) without another look at the deliveries: only suspicious views are
searched. A message that is missing at some members is a matter of Agreement, the sequence of views one of
View synchrony.
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.divergence import until_divergence
from priocast.pipeline.increasing import not_increasing
from priocast.pipeline.message_rows import rows_of
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import MESSAGE_KEY, as_messages, message_hash, message_id, view_id
from priocast.pipeline.trace_tables import TraceTables, with_view_hash
from priocast.pipeline.violations import names, union, violations
from priocast.trace.schema import RECEIVED, SENT, ViewName

_VIEW = ("run", "view", "coordinator")
_VIEWS_SCHEMA = "run string, view_hash long, first_position long, gapless boolean"
_ENDS_SCHEMA = "run string, view long, coordinator string, due long, position long"
_PROCESSES_SCHEMA = "process_hash long"
#: A step and the index of a message in its batch are one number.
_BATCH_MAX = 2**20
_POSITION_BITS = 6
_LAYERED = "/"


def find(trace: TraceTables) -> DataFrame:
    """Every position and message at which the order is not one order."""
    tables = []
    if processes := doubtful_processes(trace).collect():
        tables.append(steps_back(trace, small_table(trace.spark, processes, _PROCESSES_SCHEMA)))
    suspicious = suspicious_views(trace).collect()
    if suspicious:
        searched = small_table(trace.spark, suspicious, _VIEWS_SCHEMA)
        deliveries = trace.deliveries.join(sf.broadcast(searched), ["run", "view_hash"])
        counted = until_divergence(deliveries, trace.diverged)
        tables += [conflicts(counted), empty_positions(deliveries, trace)]
    if ends := list(early_ends(trace)):
        tables.append(empty_ends(ends, trace))
    if trace.irregular is not None and trace.any("misplaced"):
        tables.append(several_positions(trace.irregular))
    return union(trace, tables)


def suspicious_views(trace: TraceTables) -> DataFrame:
    """Views with messages that have several positions, or whose messages do not fill the positions.

    Positions are filled from the view's first on. An irregular message that has one position, because some
    member lacks it, counts like any other: however many there are, no delivery is looked at again.
    """
    once = sf.sum(sf.bit_count("positions")) == sf.sum("messages")
    filled = (sf.min("lowest") == sf.col("first_position")) & (
        sf.max("highest") - sf.min("lowest") + 1 == sf.sum("messages")
    )
    known = trace.views.select("run", "view_hash", "first_position", "gapless")
    found = (
        _by_position(trace.messages.where("deliveries > 0 and not misplaced"))
        .join(known, ["run", "view_hash"], "left")
        .groupBy("run", "view_hash", "first_position", "gapless")
        .agg((once & (filled | ~sf.col("gapless"))).alias("filled"))
        .where("not filled")
        .select("run", "view_hash")
    )
    if trace.irregular is not None and trace.any("misplaced"):
        misplaced = trace.messages.where("misplaced").select(message_hash().alias("message_hash"))
        of_misplaced = trace.irregular.join(sf.broadcast(misplaced), "message_hash", "left_semi")
        found = found.unionByName(of_misplaced.select("run", "view_hash")).distinct()
    return found.join(known, ["run", "view_hash"], "left")


def _by_position(messages: DataFrame) -> DataFrame:
    """How many messages there are at each 64 positions of a view; `positions` has a bit for each of these."""
    neighbours = sf.shiftright("position", _POSITION_BITS)
    bit = sf.expr(f"shiftleft(1L, cast(position & {2**_POSITION_BITS - 1} as int))")
    return messages.groupBy("run", "view_hash", neighbours.alias("neighbours")).agg(
        sf.bit_or(bit).alias("positions"),
        sf.count(sf.lit(1)).alias("messages"),
        sf.min("position").alias("lowest"),
        sf.max("position").alias("highest"),
    )


def conflicts(deliveries: DataFrame) -> DataFrame:
    """Positions at which more than one message was delivered, and who delivered which.

    Which positions these are is found first: to collect who delivered what is much more work.
    """
    in_conflict = (
        deliveries.withColumn("message_hash", message_hash())
        .groupBy("run", "view_hash", "position")
        .agg(sf.min("message_hash").alias("lowest"), sf.max("message_hash").alias("highest"))
        .where("lowest < highest")
        .select("run", "view_hash", "position")
    )
    who = sf.concat(names("members"), sf.lit(" delivered "), sf.col("message"))
    found = (
        deliveries.join(in_conflict, ["run", "view_hash", "position"], "left_semi")
        .withColumn("message", message_id())
        .groupBy(*_VIEW, "position", "message")
        .agg(sf.array_sort(sf.collect_set("process")).alias("members"))
        .withColumn("who", who)
        .groupBy(*_VIEW, "position")
        .agg(
            sf.array_sort(sf.collect_list("message")).alias("messages"),
            sf.array_sort(sf.array_distinct(sf.flatten(sf.collect_list("members")))).alias("members"),
            sf.array_sort(sf.collect_list("who")).alias("who"),
        )
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.col("messages"),
        members=sf.col("members"),
        summary=sf.array_join("who", "; "),
    )


def several_positions(irregular: DataFrame) -> DataFrame:
    """Messages that were delivered at more than one position, and who delivered them where."""
    where = sf.concat(
        names("members"),
        sf.lit(" delivered it at position "),
        sf.col("position"),
        sf.lit(" of view "),
        view_id(),
    )
    place = sf.struct("view_hash", "position")
    binding = irregular.where("binding")
    misplaced = (
        binding.groupBy("message_hash")
        .agg(sf.min(place).alias("lowest"), sf.max(place).alias("highest"))
        .where("lowest < highest")
        .select("message_hash")
    )
    found = (
        binding.join(misplaced, "message_hash", "left_semi")
        .groupBy(*MESSAGE_KEY, "view", "coordinator", "position")
        .agg(sf.array_sort(sf.collect_set("process")).alias("members"))
        .withColumn("where", where)
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.min(sf.struct("view", "coordinator", "position")).alias("first"),
            sf.array_sort(sf.array_distinct(sf.flatten(sf.collect_list("members")))).alias("members"),
            sf.array_sort(sf.collect_list("where")).alias("where"),
        )
        .select("*", "first.*")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("members"),
        summary=sf.array_join("where", "; "),
    )


def empty_positions(deliveries: DataFrame, trace: TraceTables) -> DataFrame:
    """Positions that nobody delivered at although later ones were delivered, without an excuse."""
    in_order = Window.partitionBy(*_VIEW).orderBy("position")
    due = sf.greatest(sf.lag("position").over(in_order) + 1, "first_position")
    gaps = (
        deliveries.where("gapless")
        .select(*_VIEW, "view_hash", "first_position", "position")
        .distinct()
        .withColumn("due", due)
        .where(sf.col("position") > sf.col("due"))
    )
    return report_gaps(
        gaps, trace, "nobody delivered at position %d, which was due; the next delivery is at %d"
    )


def early_ends(trace: TraceTables) -> Iterator[tuple[str, ViewName, int, int]]:
    """Views whose last deliveries are missing: the position that is due, and the one before which it is.

    The end of a final view is known from packets. In a real run the application need not have consumed what
    they contain; in a layer, they have the positions of the order below.
    """
    for run in trace.runs:
        processes = trace.histories[run.name].processes.values()
        for view in trace.views_of[run.name].values():
            if view.final and (not run.loses_nothing or _LAYERED in view.order.order):
                continue
            spans = (process.delivered.get(view.name) for process in processes)
            due = max([view.first_position, *(span.position_last + 1 for span in spans if span)])
            if view.gapless and due < view.end_position:
                yield run.name, view.name, due, view.end_position


def empty_ends(ends: list[tuple[str, ViewName, int, int]], trace: TraceTables) -> DataFrame:
    """Positions at the end of a view that nobody delivered at, without an excuse."""
    rows = [(run, *view, due, end) for run, view, due, end in ends]
    gaps = with_view_hash(small_table(trace.spark, rows, _ENDS_SCHEMA))
    return report_gaps(gaps, trace, "nobody delivered at position %d, although the view ends at %d")


def report_gaps(gaps: DataFrame, trace: TraceTables, summary: str) -> DataFrame:
    """Positions from `due` until `position` that are empty, without an excuse."""
    if trace.any("withheld") or trace.any("nonbinding"):
        gaps = unexplained(gaps, trace)
    return violations(
        gaps,
        position=sf.col("due"),
        messages=sf.array(),
        members=sf.array(),
        summary=sf.format_string(summary, "due", "position"),
    )


def unexplained(gaps: DataFrame, trace: TraceTables) -> DataFrame:
    """Gaps that are wider than the messages that the order may skip can explain.

    Packets contain the positions of those. In a view in which no single member assigns positions they need
    not, and any such message in the run explains any gap.
    """
    skipped = trace.may_lack_position().where("special").select(*MESSAGE_KEY)
    without_orderer = trace.views.where("orderer = ''").select("run", "view_hash")
    excused = without_orderer.join(skipped.select("run").distinct(), "run", "left_semi")
    packets = trace.batches.where(sf.col("event").isin(SENT, RECEIVED) & (sf.col("position") >= 0))
    ordered = (
        as_messages(rows_of(packets, skipped))
        .select("run", "view_hash", sf.col("position").alias("ordered_at"))
        .distinct()
    )
    inside = (sf.col("ordered_at") >= sf.col("due")) & (sf.col("ordered_at") < sf.col("position"))
    return (
        gaps.join(sf.broadcast(excused), ["run", "view_hash"], "left_anti")
        .join(sf.broadcast(ordered), ["run", "view_hash"], "left")
        .groupBy(*_VIEW, "position", "due")
        .agg(sf.count_if(inside).alias("explained"))
        .where(sf.col("explained") < sf.col("position") - sf.col("due"))
    )


def doubtful_processes(trace: TraceTables) -> DataFrame:
    """The processes that may have delivered at a position that they had already reached or passed."""
    step = sf.col("step") * _BATCH_MAX + sf.col("index")
    return not_increasing(trace.deliveries, ["process_hash"], sf.col("position"), step)


def steps_back(trace: TraceTables, processes: DataFrame) -> DataFrame:
    """Deliveries of these processes at a position that they had already reached or passed, by their steps."""
    before = Window.partitionBy("process_hash").orderBy("step").rowsBetween(Window.unboundedPreceding, -1)
    found = (
        trace.delivered_batches.join(sf.broadcast(processes), "process_hash", "left_semi")
        .withColumn("reached", sf.max(sf.col("position") + sf.col("count") - 1).over(before))
        .where(sf.col("position") <= sf.col("reached"))
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        summary=sf.format_string("%s delivered it after it had reached position %d", "process", "reached"),
    )
