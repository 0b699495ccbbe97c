"""Uniformity: a safe message that any process delivered, even one that then crashed, is nowhere missing.

Two things are checked of every message that its sender asked to be safe, or that a group delivers safely:

1. In a primary group, who went on or stayed from the view in which *any* process delivered it delivered it
   there, too. In a partitionable group this holds for those who went on together with one that delivered it.
   (Each if it was addressed, and took over no state that holds the message.)
2. When it was delivered, every member of the view held it. A process that works on in the view after its
   delivery (its protocol sends, receives or is given messages there) did not deliver it because the view was
   closing: every addressed member must have it on record in that view, as received or as sent in a packet
   that carries it; and, if somebody sent it with a position, in a packet that has its position, and that
   carries or only names it. In a final view, which never closed, that is asked of every delivery. A process
   whose record may lack its end (killed, in a run that is not simulated) is not asked.
"""

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.agreement import account, lacking_among_peers, report_missing
from priocast.pipeline.checks.violation import names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.ledger import is_named
from priocast.pipeline.membership import FELL_OUT, GroupView
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_id
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT

# Who holds a message is told by the bits of a few words, one for each member's seat in the view: to combine
# them costs no more than a minimum, however often a process received the message.
_SEATS_PER_WORD = 62
_ALWAYS = 2**63 - 1
_SEATS_SCHEMA = """run string, view long, coordinator string, process string, word int, bit long,
    in_course_until long"""
_DUE_SCHEMA = "run string, view long, coordinator string, to string, word int, due long"


def find(evidence: Evidence) -> DataFrame:
    """Every safe message that somebody should have and has not."""
    parts = []
    if evidence.any("safe"):
        if evidence.odd is not None:
            parts.append(incomplete(evidence.odd.where("safe"), evidence))
        parts.append(not_held(evidence))
    return together(evidence, parts)


def incomplete(odd: DataFrame, evidence: Evidence) -> DataFrame:
    """Safe messages that somebody delivered and others, who went on, did not."""
    primary = sf.col("run").isin([run.name for run in evidence.runs if run.primary])
    anyone = sf.transform("lacking", lambda member: member["process"])
    missing = sf.array_sort(sf.when(primary, anyone).otherwise(lacking_among_peers()))
    found = account(odd, evidence).withColumn("missing", missing).where(sf.size("missing") > 0)
    return report_missing(found)


def not_held(evidence: Evidence) -> DataFrame:
    """Safe messages that were delivered in the course of a view while some member of it did not hold them."""
    lacks = sf.col("due").bitwiseAND(sf.bitwise_not("held")).bitwiseAND(sf.col("bit")) != 0
    found = (
        holders(evidence)
        .join(sf.broadcast(due(evidence)), ["run", "view_print", "to_print", "word"])
        .where(sf.col("due").bitwiseAND(sf.bitwise_not("held")) != 0)
        .join(sf.broadcast(seats(evidence)), ["run", "view_print", "word"])
        .where(lacks)
        .groupBy(*MESSAGE_KEY, "view", "coordinator", "position")
        .agg(sf.array_sort(sf.collect_set("process")).alias("lacking"))
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("lacking"),
        detail=sf.concat(sf.lit("it was delivered while it was not held by "), names("lacking")),
    )


def holders(evidence: Evidence) -> DataFrame:
    """Of each safe message that was delivered in the course of a view, the seats of those who hold it.

    One row for each word. If somebody sent it with a position, having it without one does not count. A packet
    that only names messages does not say which of them are safe.
    """
    event, bit = sf.col("event"), sf.col("bit")
    is_delivery, is_placed = event == DELIVERED, sf.col("position") >= 0
    may_be_safe = sf.col("safe") | (is_named() & is_placed)
    rows = (
        evidence.events.where(may_be_safe & event.isin(BROADCAST, SENT, RECEIVED, DELIVERED))
        .join(sf.broadcast(seats(evidence).drop("view", "coordinator")), ["run", "view_print", "process"])
        .withColumn("to_print", sf.when(~is_named(), sf.xxhash64("to")))
        .withColumn("delivered_at", sf.when(is_delivery, sf.col("position")))
        .withColumn("in_course", is_delivery & (sf.col("step") < sf.col("in_course_until")))
        .withColumn("sent_placed", (event == SENT) & is_placed)
        .withColumn("bit_placed", sf.when(~is_delivery & is_placed, bit))
        .withColumn("bit", sf.when(~is_delivery & ~is_named(), bit))
    )
    words = range(max(word for *_, word, _, _ in _seats(evidence)) + 1)

    def seats_in(column: str, word: int) -> Column:
        return sf.coalesce(sf.bit_or(sf.when(sf.col("word") == word, sf.col(column))), sf.lit(0))

    both = sf.zip_with("any", "placed", lambda carried, placed: carried.bitwiseAND(placed))
    return (
        explode_batches(rows)
        .groupBy(*MESSAGE_KEY, "view_print")
        .agg(
            sf.min("to_print").alias("to_print"),
            sf.max("safe").alias("safe"),
            sf.max("in_course").alias("in_course"),
            sf.max("sent_placed").alias("sent_placed"),
            sf.min(sf.col("delivered_at") + sf.col("index")).alias("position"),
            sf.array(*(seats_in("bit", word) for word in words)).alias("any"),
            sf.array(*(seats_in("bit_placed", word) for word in words)).alias("placed"),
        )
        .where("safe and in_course")
        .withColumn("held", sf.when(sf.col("sent_placed"), both).otherwise(sf.col("any")))
        .select("*", sf.posexplode("held").alias("word", "held_there"))
        .drop("held", "any", "placed")
        .withColumnRenamed("held_there", "held")
    )


def seats(evidence: Evidence) -> DataFrame:
    """Each member's seat in each view, and until which of its steps it was certainly at work there."""
    rows = evidence.spark.createDataFrame(list(_seats(evidence)), _SEATS_SCHEMA)
    return rows.withColumn("view_print", sf.xxhash64("view", "coordinator"))


def due(evidence: Evidence) -> DataFrame:
    """The seats of those who have to hold what is sent in a view, to all or to some."""
    rows = [
        (run.name, *view.name, to, word, bits)
        for run in evidence.runs
        for view in evidence.views_of[run.name].values()
        for to in ("", *evidence.chronicles[run.name].addressed)
        for word, bits in _bits(view, to, evidence.lost_processes(run))
    ]
    return (
        evidence.spark.createDataFrame(rows, _DUE_SCHEMA)
        .withColumn("view_print", sf.xxhash64("view", "coordinator"))
        .withColumn("to_print", sf.xxhash64("to"))
        .drop("view", "coordinator", "to")
    )


def _seats(evidence: Evidence) -> Iterator[tuple[str, int, str, str, int, int, int]]:
    for run, views in evidence.views_of.items():
        lives = evidence.chronicles[run].lives
        for view in views.values():
            for place, process in enumerate(view.members):
                word, seat = divmod(place, _SEATS_PER_WORD)
                until = lives[process].worked_until.get(view.name, 0) if process in lives else 0
                yield run, *view.name, process, word, 1 << seat, _ALWAYS if view.final else until


def _bits(view: GroupView, to: str, lost: set[str]) -> Iterator[tuple[int, int]]:
    bits: dict[int, int] = {}
    for place, stay in enumerate(view.stays):
        word, seat = divmod(place, _SEATS_PER_WORD)
        is_cut = stay.onward == FELL_OUT and stay.process in lost
        if not is_cut and (not to or stay.name in to.split(",")):
            bits[word] = bits.get(word, 0) | 1 << seat
    yield from bits.items()
