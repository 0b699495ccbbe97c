"""Integrity: delivered at most once, only if it was broadcast, and only by those whom it is for.

Those are the members of the view in which it is ordered and, if the sender named some, of these the named
ones. A process that took over the group's state has with it everything before a position: what it delivers of
that, it has twice.

A process that is killed loses the end of its record, and with it perhaps the broadcast of a message that
others delivered. If its record just ends, nothing that would come after this end is held against it. (In a
simulated run no record is cut.)
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import Finding, is_addressed, names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import MESSAGE_KEY, STREAM_KEY, message_id, process_id
from priocast.trace.schema import BROADCAST, DELIVERED

_STATES_SCHEMA = "run string, process string, state_step long, state_position long"


def find(evidence: Evidence) -> DataFrame:
    """Every way in which a delivery can be one that should not be.

    What a member repeats, or delivers although it is for others, is odd; the ledger has counted whether there
    is any.
    """
    parts = []
    if evidence.odd is not None:
        parts += [repeated(evidence.odd), not_addressed(evidence.odd)]
    if evidence.any("unknown"):
        parts.append(never_broadcast(evidence))
    if states := list(doubtful_states(evidence)):
        parts.append(in_the_state(evidence, states))
    return together(evidence, parts, by_outsiders(evidence))


def repeated(odd: DataFrame) -> DataFrame:
    """Messages that a process delivered more than once."""
    place = sf.struct("view", "coordinator", "position")
    found = (
        odd.groupBy(*MESSAGE_KEY, "process")
        .agg(
            sf.count(sf.lit(1)).alias("times"),
            sf.max(place).alias("place"),
            sf.array_sort(sf.collect_list("position")).alias("positions"),
        )
        .where(sf.col("times") > 1)
        .select("*", "place.view", "place.coordinator")
    )
    return violations(
        found,
        position=sf.element_at("positions", -1),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string(
            "%s delivered it %d times, at positions %s",
            "process",
            "times",
            sf.array_join(sf.col("positions").cast("array<string>"), ", "),
        ),
    )


def never_broadcast(evidence: Evidence) -> DataFrame:
    """Messages that were delivered but that no application handed over."""
    place = sf.struct("view", "coordinator")
    unknown = evidence.ledger.where("unknown").select(*MESSAGE_KEY)
    found = (
        evidence.deliveries_of(_on_record(evidence, unknown))
        .groupBy(*MESSAGE_KEY)
        .agg(
            sf.min(place).alias("place"),
            sf.min("position").alias("position"),
            sf.collect_set("process").alias("members"),
        )
        .select("*", "place.view", "place.coordinator")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array_sort("members"),
        detail=sf.concat(names("members"), sf.lit(" delivered it, and nobody broadcast it")),
    )


def _on_record(evidence: Evidence, unknown: DataFrame) -> DataFrame:
    """Of these messages, the ones whose broadcast would be on record."""
    cut = [(run.name, process) for run in evidence.runs for process in evidence.lost_processes(run)]
    if not cut:
        return unknown
    senders = evidence.spark.createDataFrame(cut, "run string, process string").withColumn(
        "is_cut", sf.lit(True)
    )
    recorded = (
        evidence.events.where(sf.col("event") == BROADCAST)
        .groupBy(*STREAM_KEY)
        .agg(sf.max(sf.col("first") + sf.col("count") - 1).alias("recorded"))
    )
    after_the_end = sf.col("number") > sf.coalesce("recorded", sf.lit(-1))
    return (
        unknown.withColumn("process", process_id("sender", "sender_incarnation"))
        .join(sf.broadcast(senders), ["run", "process"], "left")
        .join(recorded, list(STREAM_KEY), "left")
        .where(sf.col("is_cut").isNull() | ~after_the_end)
        .select(*MESSAGE_KEY)
    )


def by_outsiders(evidence: Evidence) -> Iterator[Finding]:
    """Processes that delivered in a view that they are not in, each with its first such delivery."""
    for run, chronicle in evidence.chronicles.items():
        views = evidence.views_of[run]
        for life in chronicle.lives.values():
            for name, span in life.delivered.items():
                if name not in views or life.process not in views[name].members:
                    detail = (
                        f"{life.process} is not a member of view {name} and delivered {span.count:,} there"
                    )
                    yield Finding(run, *name, span.position_first, (), (life.process,), detail)


def not_addressed(odd: DataFrame) -> DataFrame:
    """Deliveries at members for whom the message was not."""
    return violations(
        odd.where(~is_addressed()),
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string("%s delivered it, and it was for %s", "process", "to"),
    )


def doubtful_states(evidence: Evidence) -> Iterator[tuple[str, str, int, int]]:
    """States with deliveries on the wrong side of them, perhaps: later at lower positions, or the reverse."""
    for run, chronicle in evidence.chronicles.items():
        for life in chronicle.lives.values():
            for state in life.restored:
                if any(
                    (span.step_last > state.step and span.position_first < state.position)
                    or (span.step_first < state.step and span.position_last >= state.position)
                    for span in life.delivered.values()
                ):
                    yield run, life.process, state.step, state.position


def in_the_state(evidence: Evidence, states: list[tuple[str, str, int, int]]) -> DataFrame:
    """Deliveries on the wrong side of a state: of what it holds, or lost when it was taken over."""
    taken_over = evidence.spark.createDataFrame(states, _STATES_SCHEMA)
    held = (sf.col("step") > sf.col("state_step")) & (sf.col("position") < sf.col("state_position"))
    last = sf.col("position") + sf.col("count") - 1
    undone = (sf.col("step") < sf.col("state_step")) & (last >= sf.col("state_position"))
    found = (
        evidence.events.where(sf.col("event") == DELIVERED)
        .join(sf.broadcast(taken_over), ["run", "process"])
        .where(held | undone)
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string(
            "%s delivered it %s it took over the state as of position %d",
            "process",
            sf.when(held, sf.lit("after")).otherwise(sf.lit("before")),
            "state_position",
        ),
    )
