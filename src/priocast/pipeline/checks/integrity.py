"""Integrity: a message is delivered at most once, only if it was broadcast, and only by its recipients.

A message is broadcast once: a second one would have another number.

The recipients are the members of the view in which the message is ordered and, if the sender named some, only
those. A process that received the group's state has everything before its position: if it delivers any of
that, it has it twice.

A process that is killed loses the last rows of its record, and possibly the broadcast of a message that
others delivered. If its record just ends, messages with later numbers are not reported. (In a simulated run
no record is truncated.)
"""

from collections.abc import Iterator
from functools import reduce
from operator import add

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.core.guarantees import INTEGRITY
from priocast.core.violation import Violation
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import MESSAGE_KEY, STREAM_KEY, message_hash, message_id, process_id
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import is_recipient, names, union, violations
from priocast.trace.schema import BROADCAST

_STATES_SCHEMA = "run string, process string, state_step long, state_position long"


def find(trace: TraceTables) -> DataFrame:
    """Every delivery that must not be.

    A repeated delivery, or one by a member that is not a recipient, makes a message irregular; the counts say
    whether there are irregular or spurious messages at all.
    """
    tables = []
    if trace.irregular is not None:
        tables += [repeated(suspects(trace)), by_others(trace.irregular)]
    if trace.any("spurious"):
        tables.append(never_broadcast(trace))
    if trace.any("broadcast_again"):
        tables.append(broadcast_again(trace))
    if states := list(suspicious_states(trace)):
        tables.append(covered_by_state(trace, states))
    return union(trace, tables, by_outsiders(trace))


def suspects(trace: TraceTables) -> DataFrame:
    """The deliveries of irregular messages that a process may have delivered more than once.

    In one view there are then more deliveries than members that delivered; or there are several places.
    """
    assert trace.irregular is not None and trace.irregular_sets is not None
    members = reduce(add, (sf.bit_count(f"delivered_{word}") for word in trace.words))
    suspicious = trace.irregular_sets.where(sf.col("deliveries") > members).select("message_hash")
    if trace.any("misplaced"):
        misplaced = trace.messages.where("misplaced").select(message_hash().alias("message_hash"))
        suspicious = suspicious.unionByName(misplaced)
    return trace.irregular.join(sf.broadcast(suspicious), "message_hash", "left_semi")


def repeated(irregular: DataFrame) -> DataFrame:
    """Messages that a process delivered more than once."""
    where = sf.struct("view", "coordinator", "position")
    several = (
        irregular.groupBy("message_hash", "process")
        .count()
        .where("count > 1")
        .select("message_hash", "process")
    )
    found = (
        irregular.join(several, ["message_hash", "process"], "left_semi")
        .groupBy(*MESSAGE_KEY, "process")
        .agg(
            sf.count(sf.lit(1)).alias("times"),
            sf.max(where).alias("last"),
            sf.array_sort(sf.collect_list("position")).alias("positions"),
        )
        .select("*", "last.view", "last.coordinator")
    )
    return violations(
        found,
        position=sf.element_at("positions", -1),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        summary=sf.format_string(
            "%s delivered it %d times, at positions %s",
            "process",
            "times",
            sf.array_join(sf.col("positions").cast("array<string>"), ", "),
        ),
    )


def never_broadcast(trace: TraceTables) -> DataFrame:
    """Messages that were delivered but that no application broadcast."""
    spurious = trace.messages.where("spurious").select(*MESSAGE_KEY)
    found = (
        trace.deliveries_of(_recorded(trace, spurious))
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.min(sf.struct("view", "coordinator")).alias("first"),
            sf.min("position").alias("position"),
            sf.collect_set("process").alias("members"),
        )
        .select("*", "first.view", "first.coordinator")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array_sort("members"),
        summary=sf.concat(names("members"), sf.lit(" delivered it, but nobody broadcast it")),
    )


def broadcast_again(trace: TraceTables) -> DataFrame:
    """Messages whose broadcast was recorded more than once: two messages cannot have one number."""
    nowhere = {"view": sf.lit(None).cast("long"), "coordinator": sf.lit(None).cast("string")}
    return violations(
        trace.messages.where("broadcast_again").withColumns(nowhere),
        position=sf.lit(None),
        messages=sf.array(message_id()),
        members=sf.array(process_id("sender", "sender_incarnation")),
        summary=sf.format_string("it was broadcast %d times", "broadcasts"),
    )


def _recorded(trace: TraceTables, spurious: DataFrame) -> DataFrame:
    """Of these messages, the ones whose broadcast would have been recorded."""
    truncated = [(run.name, process) for run in trace.runs for process in trace.truncated_processes(run)]
    if not truncated:
        return spurious
    senders = small_table(trace.spark, truncated, "run string, process string").withColumn(
        "is_truncated", sf.lit(True)
    )
    recorded = (
        trace.batches.where(sf.col("event") == BROADCAST)
        .groupBy(*STREAM_KEY)
        .agg(sf.max(sf.col("first") + sf.col("count") - 1).alias("recorded"))
    )
    after_the_end = sf.col("number") > sf.coalesce("recorded", sf.lit(-1))
    return (
        spurious.withColumn("process", process_id("sender", "sender_incarnation"))
        .join(sf.broadcast(senders), ["run", "process"], "left")
        .join(recorded, list(STREAM_KEY), "left")
        .where(sf.col("is_truncated").isNull() | ~after_the_end)
        .select(*MESSAGE_KEY)
    )


def by_outsiders(trace: TraceTables) -> Iterator[Violation]:
    """Processes that delivered in a view without being a member, each with its first such delivery."""
    for run, history in trace.histories.items():
        views = trace.views_of[run]
        for process in history.processes.values():
            for view, span in process.delivered.items():
                if view not in views or process.id not in views[view].members:
                    yield Violation(
                        guarantee=INTEGRITY,
                        summary=f"{process.id} is not a member of view {view} and delivered {span.count:,} "
                        "messages there",
                        run=run,
                        view=str(view),
                        position=span.position_first,
                        members=(process.id,),
                    )


def by_others(irregular: DataFrame) -> DataFrame:
    """Deliveries by members that are not recipients of the message."""
    return violations(
        irregular.where(~is_recipient()),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        summary=sf.format_string("%s delivered it, but it was for %s", "process", "to"),
    )


def suspicious_states(trace: TraceTables) -> Iterator[tuple[str, str, int, int]]:
    """States with possibly misplaced deliveries: lower positions after them, or higher ones before them."""
    for run, history in trace.histories.items():
        for process in history.processes.values():
            for state in process.states:
                if any(
                    (span.step_last > state.step and span.position_first < state.position)
                    or (span.step_first < state.step and span.position_last >= state.position)
                    for span in process.delivered.values()
                ):
                    yield run, process.id, state.step, state.position


def covered_by_state(trace: TraceTables, states: list[tuple[str, str, int, int]]) -> DataFrame:
    """Deliveries that a state covers, or that were lost because a state replaced them."""
    received = small_table(trace.spark, states, _STATES_SCHEMA)
    covered = (sf.col("step") > sf.col("state_step")) & (sf.col("position") < sf.col("state_position"))
    last = sf.col("position") + sf.col("count") - 1
    replaced = (sf.col("step") < sf.col("state_step")) & (last >= sf.col("state_position"))
    found = (
        trace.delivered_batches.join(sf.broadcast(received), ["run", "process"])
        .where(covered | replaced)
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        summary=sf.format_string(
            "%s delivered it %s it received the state as of position %d",
            "process",
            sf.when(covered, sf.lit("after")).otherwise(sf.lit("before")),
            "state_position",
        ),
    )
