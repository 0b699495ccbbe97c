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
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.agreement import (
    deliverers,
    lacking_among_peers,
    missing_deliveries,
    with_missing,
)
from priocast.pipeline.membership import GroupView
from priocast.pipeline.message_table import is_reference
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, hash_of_process, message_id
from priocast.pipeline.trace_tables import TraceTables, bit_of, with_view_hash
from priocast.pipeline.violations import names, union, violations
from priocast.trace.schema import DELIVERED, SENT

_ALWAYS = 2**63 - 1
_BITS_SCHEMA = """run string, view long, coordinator string, process string, word int, bit long,
    working_until long"""
_REQUIRED_SCHEMA = "run string, view long, coordinator string, to string, word int, required long"


def find(trace: TraceTables) -> DataFrame:
    """Every safe message that a process should have and does not have."""
    tables = []
    if trace.any("safe"):
        tables += missing_deliveries(trace, lambda sets: incomplete(sets.where("safe"), trace))
        tables.append(not_received(trace))
    return union(trace, tables)


def incomplete(sets: DataFrame, trace: TraceTables) -> DataFrame:
    """Safe messages that one process delivered, and others that continued did not."""
    primary = sf.col("run").isin([run.name for run in trace.runs if run.primary])
    anyone = sf.transform("lacking", lambda member: member["process"])
    missing = sf.when(primary, anyone).otherwise(lacking_among_peers())
    return with_missing(deliverers(sets, trace), missing)


def not_received(trace: TraceTables) -> DataFrame:
    """Safe messages that were delivered during a view while some member of it had not received them."""
    words = trace.words
    lacking = [sf.col(f"required_{word}").bitwiseAND(sf.bitwise_not(f"received_{word}")) for word in words]
    members = bits_of_members(trace)
    found = (
        receivers(trace)
        .join(sf.broadcast(trace.senders), "sender_hash")
        .join(sf.broadcast(required(trace)), ["run", "view_hash", "to_hash"])
        .where(reduce(or_, (of_word != 0 for of_word in lacking)))
        .select("*", sf.posexplode(sf.array(*lacking)).alias("word", "lacking"))
        .join(sf.broadcast(members), ["run", "view_hash", "word"])
        .where(sf.col("lacking").bitwiseAND(sf.col("bit")) != 0)
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

    One column for each word. If any process sent it with a position, a packet without one does not count. A
    packet that only references messages does not contain which of them are safe.
    """
    event, bit = sf.col("event"), sf.col("bit")
    is_delivery, is_ordered = event == DELIVERED, sf.col("position") >= 0
    may_be_safe = sf.col("safe") | (is_reference() & is_ordered)
    members = bits_of_members(trace).select(_member_hash(), "word", "bit", "working_until")
    rows = (
        trace.batches.where(may_be_safe)
        .withColumn("member_hash", _member_hash())
        .join(sf.broadcast(members), "member_hash")
        .withColumns(
            {
                "to_hash": sf.when(~is_reference(), sf.xxhash64("to")),
                "delivered_at": sf.when(is_delivery, sf.col("position")),
                "during_view": is_delivery & (sf.col("step") < sf.col("working_until")),
                "sent_ordered": (event == SENT) & is_ordered,
                "bit_ordered": sf.when(~is_delivery & is_ordered, bit),
                "bit": sf.when(~is_delivery & ~is_reference(), bit),
            }
        )
    )

    words = trace.words

    def bits_in(column: str, word: int) -> Column:
        return sf.coalesce(sf.bit_or(sf.when(sf.col("word") == word, sf.col(column))), sf.lit(0))

    def received(word: int) -> Column:
        carried, ordered = sf.col(f"any_{word}"), sf.col(f"ordered_{word}")
        return sf.when(sf.col("sent_ordered"), carried.bitwiseAND(ordered)).otherwise(carried)

    return (
        explode_batches(rows)
        .groupBy("sender_hash", "level", "number", "view_hash")
        .agg(
            sf.min("to_hash").alias("to_hash"),
            sf.max("safe").alias("safe"),
            sf.max("during_view").alias("during_view"),
            sf.max("sent_ordered").alias("sent_ordered"),
            sf.min(sf.col("delivered_at") + sf.col("index")).alias("position"),
            *(bits_in("bit", word).alias(f"any_{word}") for word in words),
            *(bits_in("bit_ordered", word).alias(f"ordered_{word}") for word in words),
        )
        .where("safe and during_view")
        .withColumns({f"received_{word}": received(word) for word in words})
        .drop(*(f"{kind}_{word}" for kind in ("any", "ordered") for word in words))
    )


def bits_of_members(trace: TraceTables) -> DataFrame:
    """Each member's bit in each view, and the last step at which it certainly worked there."""
    known = with_view_hash(small_table(trace.spark, _bits_of_members(trace), _BITS_SCHEMA))
    return known.withColumn("process_hash", hash_of_process("run", sf.col("process")))


def _member_hash() -> Column:
    """A process in a view, as one number."""
    return sf.xxhash64("process_hash", "view_hash").alias("member_hash")


def required(trace: TraceTables) -> DataFrame:
    """The bits of the members that must have received a message of a view, by its recipients."""
    rows = [
        (run.name, *view.name, to, word, bits)
        for run in trace.runs
        for view in trace.views_of[run.name].values()
        for to in ("", *trace.histories[run.name].recipient_lists)
        for word, bits in _required_bits(view, to, trace.truncated_processes(run))
    ]
    of_word = (sf.max(sf.when(sf.col("word") == word, sf.col("required"))) for word in trace.words)
    return (
        with_view_hash(small_table(trace.spark, rows, _REQUIRED_SCHEMA))
        .groupBy("run", "view_hash", sf.xxhash64("to").alias("to_hash"))
        .agg(*(sf.coalesce(bits, sf.lit(0)).alias(f"required_{word}") for word, bits in enumerate(of_word)))
    )


def _bits_of_members(trace: TraceTables) -> Iterator[tuple[str, int, str, str, int, int, int]]:
    for run, views in trace.views_of.items():
        processes = trace.histories[run].processes
        for view in views.values():
            for rank, process in enumerate(view.members):
                until = processes[process].worked_until.get(view.name, 0) if process in processes else 0
                yield run, *view.name, process, *bit_of(rank), _ALWAYS if view.final else until


def _required_bits(view: GroupView, to: str, truncated: set[str]) -> Iterator[tuple[int, int]]:
    bits: dict[int, int] = {}
    for rank, each in enumerate(view.participations):
        word, bit = bit_of(rank)
        is_truncated = each.dropped_out and each.process in truncated
        if not is_truncated and (not to or each.name in to.split(",")):
            bits[word] = bits.get(word, 0) | bit
    yield from bits.items()
