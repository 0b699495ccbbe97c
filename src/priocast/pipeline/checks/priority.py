"""Priority: at the queue that decides the order, nothing leaves before what ranks ahead of it.

A message *h* was **wronged** by *l* if h was in the queue when l left, and h ranks ahead of l. Ranks are
those of the run's starvation policy, from the time at which a message entered. Everything is judged by the
order of the orderer's own steps, so no two clocks are compared.

Each view in which one member orders has a queue of its own: what is left in it when the view ends is gone
from there, and enters the next one's queue if its sender submits it again. Which policy orders is known for
the views until the order is changed while the group lives; the views after that are not judged.

There is no join of pairs. Walking through the queue in the order of leaving, two running values per priority
suffice: the *last* message of that priority that left, and the *highest* rank that left. Any message of the
priority left while h waited exactly if the last one did, and

- the last one ranks behind h: h was wronged, by it;
- not even the highest rank is behind h: h was not wronged by that priority;
- in between: the priority itself left out of rank order, so the run is condemned already; to count and name
  h exactly, those (and only those) are compared with what left while they waited.

Under `none` all of a priority have one rank, and the third case does not exist.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.core.starvation import Strict
from priocast.pipeline.checks.violation import together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.ledger import places_it
from priocast.pipeline.sources import message_id

_NEVER = 2**63 - 1


def find(evidence: Evidence) -> DataFrame:
    """Every departure from the queue that should not have been, then."""
    parts = []
    if evidence.any("queue_entries"):
        parts.append(overtaken(evidence))
    if evidence.any("unqueued") or evidence.requeued is not None:
        parts.append(out_of_nowhere(evidence))
    return together(evidence, parts)


def out_of_nowhere(evidence: Evidence) -> DataFrame:
    """Messages that the orderer gave a position without, or before, having them in its queue.

    If it sends a message again that has its place in another view, it gives it no position.
    """
    found = evidence.ledger.where("unqueued").select(
        "run", "queue_print", message_id().alias("message"), "leave_position"
    )
    if evidence.requeued is not None:
        entered_late = sf.coalesce(sf.col("leave_step") < sf.col("enter_step"), sf.lit(True))
        again = evidence.requeued.where(sf.col("leave_step").isNotNull() & entered_late & places_it())
        found = found.unionByName(again.withColumn("message", message_id()).select(found.columns))
    at = sf.col("orderer")
    return violations(
        _in_views(found, evidence),
        position=sf.col("leave_position"),
        messages=sf.array("message"),
        members=sf.array(at),
        detail=sf.concat(at, sf.lit(" gave it a position while it was not in its queue")),
    )


def overtaken(evidence: Evidence) -> DataFrame:
    """Messages that were wronged, by the policy of their run; a plain run promises nothing."""
    entered = queue(evidence).where(sf.col("rank").isNotNull())
    ageless = all(
        run.manifest.starvation == str(Strict()) for run in evidence.runs if run.manifest.prioritised
    )
    wronged = name_who_wronged(find_wronged(entered, evidence.priorities, ageless), entered)
    return violations(
        _in_views(wronged, evidence),
        position=sf.col("by.leave_position"),
        messages=sf.array("message", "by.message"),
        members=sf.array("orderer"),
        detail=sf.format_string(
            "%s (priority %d) was waiting at %s when %s (priority %d) was given position %d",
            "message",
            "priority",
            "orderer",
            "by.message",
            "by.priority",
            "by.leave_position",
        ),
    )


def inversions(evidence: Evidence) -> DataFrame:
    """Messages that a less urgent one left before, whatever the run promised: run, priority and how many.

    For a plain or an ageing run this is a measurement, not a fault. Some message must have been queued.
    """
    entered = queue(evidence).withColumn("rank", -sf.col("priority").cast("long"))
    walked = walk(entered, evidence.priorities)
    return (
        walked.where("by.rank > rank").groupBy("run", "priority").agg(sf.count(sf.lit(1)).alias("overtaken"))
    )


def queue(evidence: Evidence) -> DataFrame:
    """One row for each time that a message entered a queue, with its rank and when it left."""
    columns = [
        "run",
        "queue_print",
        "message",
        "priority",
        "rank",
        "enter_step",
        "leave_step",
        "leave_position",
    ]
    entered = evidence.ledger.where("not requeued").withColumn("message", message_id()).select(columns)
    if evidence.requeued is not None:
        again = evidence.requeued.withColumn("message", message_id())
        entered = entered.unionByName(again.select(columns))
    return entered.where(sf.col("enter_step").isNotNull()).withColumn(
        "leave_step", sf.coalesce("leave_step", sf.lit(_NEVER))
    )


def walk(entered: DataFrame, priorities: tuple[int, ...]) -> DataFrame:
    """Each row with `by`, the hindmost of the last that left while it waited, and whether it is in doubt."""
    in_order = Window.partitionBy("run", "queue_print").orderBy("leave_step", "leave_position")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    running, met, doubts = [], [sf.lit(None)], [sf.lit(False)]
    for priority in priorities:
        left = (sf.col("priority") == priority) & (sf.col("leave_step") < _NEVER)
        step, rank, highest = f"last_step_{priority}", f"last_rank_{priority}", f"highest_{priority}"
        running += [
            sf.max(sf.when(left, sf.col("leave_step"))).over(before).alias(step),
            sf.last(sf.when(left, sf.col("rank")), ignorenulls=True).over(before).alias(rank),
            sf.max(sf.when(left, sf.col("rank"))).over(before).alias(highest),
        ]
        while_waiting = sf.col(step) > sf.col("enter_step")
        departure = sf.struct(sf.col(rank).alias("rank"), sf.col(step).alias("leave_step"))
        met.append(sf.when(while_waiting, departure))
        doubts.append(while_waiting & (sf.col(rank) <= sf.col("rank")) & (sf.col(highest) > sf.col("rank")))
    return entered.select("*", *running).select(
        *entered.columns, sf.greatest(*met).alias("by"), reduce(or_, doubts).alias("in_doubt")
    )


def find_wronged(entered: DataFrame, priorities: tuple[int, ...], ageless: bool = False) -> DataFrame:
    """The rows of `entered` that were wronged; `by` is the rank and the step of one that wronged them."""
    walked = walk(entered, priorities)
    wronged = walked.where("by.rank > rank")
    if not ageless:
        doubtful = walked.where("in_doubt and by.rank <= rank").drop("by")
        wronged = wronged.unionByName(compare(doubtful, entered))
    return wronged.drop("in_doubt")


def compare(doubtful: DataFrame, entered: DataFrame) -> DataFrame:
    """The doubtful ones that were wronged after all, found pair by pair."""
    while_waiting = (sf.col("l.leave_step") > sf.col("h.enter_step")) & _left_before("l", "h")
    pairs = _left(entered).join(
        sf.broadcast(doubtful).alias("h"),
        _one_queue() & while_waiting & (sf.col("l.rank") > sf.col("h.rank")),
    )
    columns = [sf.col(f"h.{name}") for name in doubtful.columns]
    return pairs.groupBy(columns).agg(sf.max(sf.struct("l.rank", "l.leave_step")).alias("by"))


def name_who_wronged(wronged: DataFrame, entered: DataFrame) -> DataFrame:
    """`by` with everything that is known of the message: of that step and rank, the last one before."""
    same = (sf.col("l.leave_step") == sf.col("h.by.leave_step")) & (sf.col("l.rank") == sf.col("h.by.rank"))
    by = sf.struct("l.leave_position", "l.message", "l.priority")
    return (
        _left(entered)
        .join(sf.broadcast(wronged).alias("h"), _one_queue() & same & _left_before("l", "h"))
        .groupBy("h.run", "h.queue_print", "h.message", "h.priority")
        .agg(sf.max(by).alias("by"))
    )


def _in_views(found: DataFrame, evidence: Evidence) -> DataFrame:
    """What was found in queues whose policy is on record, with the view and the orderer whose queue it is."""
    promised = [run.name for run in evidence.runs if run.manifest.prioritised]
    of_queue = evidence.views.where(sf.col("run").isin(promised) & ~sf.col("reordered")).select(
        "run", sf.col("view_print").alias("queue_print"), "view", "coordinator", "orderer"
    )
    return found.join(of_queue, ["run", "queue_print"])


def _left(entered: DataFrame) -> DataFrame:
    return entered.where(sf.col("leave_step") < _NEVER).alias("l")


def _one_queue() -> Column:
    return (sf.col("l.run") == sf.col("h.run")) & (sf.col("l.queue_print") == sf.col("h.queue_print"))


def _left_before(one: str, other: str) -> Column:
    """By step, and within a step by position; what never left has no position."""
    step, other_step = sf.col(f"{one}.leave_step"), sf.col(f"{other}.leave_step")
    position, other_position = sf.col(f"{one}.leave_position"), sf.col(f"{other}.leave_position")
    return (step < other_step) | ((step == other_step) & (position < other_position))
