"""Uniformity: a safe message that any process delivered, even one that then crashed, is missing nowhere.

Two properties are checked of every message that its sender asked to be safe, or that a group delivers safely:

1. In a primary group, every member that continued or remained from the view in which *any* process delivered
   the message delivered it there, too. In a partitionable group this holds for those that continued together
   with one that delivered it. (Each if it is a recipient, and received no state that covers the message.)
2. When the message was delivered, every member of the view had received it. A process that works on in the
   view after its delivery (its protocol sends, receives or is given messages there) did not deliver the
   message because the view was ending. Every recipient must then have a record of the message in that view,
   received or sent in a packet that carries it; and, if any process sent it with a position, also in a packet
   with its position, which may carry or only reference it. In a final view, which never ended, this is
   required of every delivery. It is not required of a process whose record may lack the last rows (killed, in
   a run that is not simulated).
"""

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.agreement import deliverers, lacking_among_peers, report_missing
from priocast.pipeline.membership import GroupView
from priocast.pipeline.message_table import is_reference
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_id
from priocast.pipeline.trace_tables import TraceTables, with_view_hash
from priocast.pipeline.violations import names, union, violations
from priocast.trace.schema import DELIVERED, SENT

# Who has received a message is a set of bits in a few words, one bit for each member's rank in the view: to
# combine them costs no more than a minimum, however often a process received the message.
_RANKS_PER_WORD = 62
_ALWAYS = 2**63 - 1
_BITS_SCHEMA = """run string, view long, coordinator string, process string, word int, bit long,
    working_until long"""
_REQUIRED_SCHEMA = "run string, view long, coordinator string, to string, word int, required long"


def find(trace: TraceTables) -> DataFrame:
    """Every safe message that a process should have and does not have."""
    tables = []
    if trace.any("safe"):
        if trace.irregular is not None:
            tables.append(incomplete(trace.irregular.where("safe"), trace))
        tables.append(not_received(trace))
    return union(trace, tables)


def incomplete(irregular: DataFrame, trace: TraceTables) -> DataFrame:
    """Safe messages that one process delivered, and others that continued did not."""
    primary = sf.col("run").isin([run.name for run in trace.runs if run.primary])
    anyone = sf.transform("lacking", lambda member: member["process"])
    missing = sf.array_sort(sf.when(primary, anyone).otherwise(lacking_among_peers()))
    found = deliverers(irregular, trace).withColumn("missing", missing).where(sf.size("missing") > 0)
    return report_missing(found)


def not_received(trace: TraceTables) -> DataFrame:
    """Safe messages that were delivered during a view while some member of it had not received them."""
    missing = sf.col("required").bitwiseAND(sf.bitwise_not("received"))
    found = (
        receivers(trace)
        .join(sf.broadcast(required(trace)), ["run", "view_hash", "to_hash", "word"])
        .where(missing != 0)
        .join(sf.broadcast(bits_of_members(trace)), ["run", "view_hash", "word"])
        .where(missing.bitwiseAND(sf.col("bit")) != 0)
        .groupBy(*MESSAGE_KEY, "view", "coordinator", "position")
        .agg(sf.array_sort(sf.collect_set("process")).alias("lacking"))
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("lacking"),
        summary=sf.concat(sf.lit("it was delivered before it was received by "), names("lacking")),
    )


def receivers(trace: TraceTables) -> DataFrame:
    """Of each safe message that was delivered during a view, the bits of the members that received it.

    One row for each word. If any process sent it with a position, a packet without one does not count. A
    packet that only references messages does not contain which of them are safe.
    """
    event, bit = sf.col("event"), sf.col("bit")
    is_delivery, is_ordered = event == DELIVERED, sf.col("position") >= 0
    may_be_safe = sf.col("safe") | (is_reference() & is_ordered)
    members = bits_of_members(trace).drop("view", "coordinator")
    rows = (
        trace.batches.where(may_be_safe)
        .join(sf.broadcast(members), ["run", "view_hash", "process"])
        .withColumn("to_hash", sf.when(~is_reference(), sf.xxhash64("to")))
        .withColumn("delivered_at", sf.when(is_delivery, sf.col("position")))
        .withColumn("during_view", is_delivery & (sf.col("step") < sf.col("working_until")))
        .withColumn("sent_ordered", (event == SENT) & is_ordered)
        .withColumn("bit_ordered", sf.when(~is_delivery & is_ordered, bit))
        .withColumn("bit", sf.when(~is_delivery & ~is_reference(), bit))
    )
    words = range(max(word for *_, word, _, _ in _bits_of_members(trace)) + 1)

    def bits_in(column: str, word: int) -> Column:
        return sf.coalesce(sf.bit_or(sf.when(sf.col("word") == word, sf.col(column))), sf.lit(0))

    both = sf.zip_with("any", "ordered", lambda carried, ordered: carried.bitwiseAND(ordered))
    return (
        explode_batches(rows)
        .groupBy(*MESSAGE_KEY, "view_hash")
        .agg(
            sf.min("to_hash").alias("to_hash"),
            sf.max("safe").alias("safe"),
            sf.max("during_view").alias("during_view"),
            sf.max("sent_ordered").alias("sent_ordered"),
            sf.min(sf.col("delivered_at") + sf.col("index")).alias("position"),
            sf.array(*(bits_in("bit", word) for word in words)).alias("any"),
            sf.array(*(bits_in("bit_ordered", word) for word in words)).alias("ordered"),
        )
        .where("safe and during_view")
        .withColumn("words", sf.when(sf.col("sent_ordered"), both).otherwise(sf.col("any")))
        .select("*", sf.posexplode("words").alias("word", "received"))
        .drop("words", "any", "ordered")
    )


def bits_of_members(trace: TraceTables) -> DataFrame:
    """Each member's bit in each view, and the last step at which it certainly worked there."""
    return with_view_hash(small_table(trace.spark, _bits_of_members(trace), _BITS_SCHEMA))


def required(trace: TraceTables) -> DataFrame:
    """The bits of the members that must receive what is sent in a view, to all or to some."""
    rows = [
        (run.name, *view.name, to, word, bits)
        for run in trace.runs
        for view in trace.views_of[run.name].values()
        for to in ("", *trace.histories[run.name].recipient_lists)
        for word, bits in _required_bits(view, to, trace.truncated_processes(run))
    ]
    return (
        with_view_hash(small_table(trace.spark, rows, _REQUIRED_SCHEMA))
        .withColumn("to_hash", sf.xxhash64("to"))
        .drop("view", "coordinator", "to")
    )


def _bits_of_members(trace: TraceTables) -> Iterator[tuple[str, int, str, str, int, int, int]]:
    for run, views in trace.views_of.items():
        processes = trace.histories[run].processes
        for view in views.values():
            for rank, process in enumerate(view.members):
                word, bit = divmod(rank, _RANKS_PER_WORD)
                until = processes[process].worked_until.get(view.name, 0) if process in processes else 0
                yield run, *view.name, process, word, 1 << bit, _ALWAYS if view.final else until


def _required_bits(view: GroupView, to: str, truncated: set[str]) -> Iterator[tuple[int, int]]:
    bits: dict[int, int] = {}
    for rank, each in enumerate(view.participations):
        word, bit = divmod(rank, _RANKS_PER_WORD)
        is_truncated = each.dropped_out and each.process in truncated
        if not is_truncated and (not to or each.name in to.split(",")):
            bits[word] = bits.get(word, 0) | 1 << bit
    yield from bits.items()
