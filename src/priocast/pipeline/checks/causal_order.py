"""Causal order: what a process broadcasts has a later position than everything that it had delivered before.

Two properties are checked. With Total order they imply it:

(a) a process delivers a message of its own only after it broadcast it;
(b) a message that its sender does not deliver itself has a higher position than everything that the sender
    had delivered when it broadcast it.

If the sender delivers its message after it broadcast it, it does so at a higher position than all it had
delivered before: otherwise it steps back, which is a matter of Total order. So in a run without crashes, two
numbers of each message suffice, its sender's steps at its broadcast and at its delivery.

In (b), what the sender delivered in a view that it then dropped out of does not count, in a primary group:
such a delivery need not bind anybody.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.fifo import agreed_order
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_id, process_id
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import union, violations
from priocast.trace.schema import BROADCAST, DELIVERED


def find(trace: TraceTables) -> DataFrame:
    """Every message that is ordered before something that may have caused it."""
    tables = []
    if trace.any("premature"):
        tables.append(premature(trace))
    if trace.any("unheard"):
        tables.append(before_its_causes(trace))
    return union(trace, tables)


def premature(trace: TraceTables) -> DataFrame:
    """Messages that their sender delivered before it broadcast them."""
    sender = process_id("sender", "sender_incarnation")
    found = (
        trace.deliveries_of(trace.messages.where("premature"))
        .where(sf.col("process") == sender)
        .groupBy(*MESSAGE_KEY)
        .agg(sf.min(sf.struct("step", "view", "coordinator", "position")).alias("first"))
        .select(*MESSAGE_KEY, "first.*")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array(sender),
        summary=sf.concat(sender, sf.lit(" delivered it before it broadcast it")),
    )


def before_its_causes(trace: TraceTables) -> DataFrame:
    """Messages that their sender did not deliver, at positions that it had passed when it broadcast them."""
    sender = process_id("sender", "sender_incarnation")
    known = trace.views.select("run", "view_hash", "coordinator")
    found = (
        agreed_order(trace)
        .join(reached_when_broadcast(trace), list(MESSAGE_KEY))
        .where(sf.col("position") <= sf.col("reached"))
        .join(known, ["run", "view_hash"])
    )
    summary = sf.format_string("%s had reached position %d when it broadcast it", sender, "reached")
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array(sender),
        summary=summary,
    )


def reached_when_broadcast(trace: TraceTables) -> DataFrame:
    """How far the senders of messages that they did not deliver had got when they broadcast them."""
    unheard = trace.messages.where("unheard")
    senders = unheard.select("run", process_id("sender", "sender_incarnation").alias("process")).distinct()
    binding = trace.participations.where("binds").select("run", "view_hash", "process", "binds")
    before = Window.partitionBy("run", "process").orderBy("step").rowsBetween(Window.unboundedPreceding, -1)
    last = sf.col("position") + sf.col("count") - 1
    delivered = sf.when((sf.col("event") == DELIVERED) & sf.col("binds"), last)
    return (
        trace.batches.where(sf.col("event").isin(BROADCAST, DELIVERED))
        .join(sf.broadcast(senders), ["run", "process"], "left_semi")
        .join(binding, ["run", "view_hash", "process"], "left")
        .withColumn("reached", sf.max(delivered).over(before))
        .where((sf.col("event") == BROADCAST) & sf.col("reached").isNotNull())
        .where(sf.col("process") == process_id("sender", "sender_incarnation"))
        .transform(explode_batches)
        .join(sf.broadcast(unheard.select(*MESSAGE_KEY)), list(MESSAGE_KEY), "left_semi")
        .groupBy(*MESSAGE_KEY)
        .agg(sf.min("reached").alias("reached"))
    )
