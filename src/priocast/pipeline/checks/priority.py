"""Priority accounting: at the queue that decides the order, nothing leaves before what ranks ahead of it.

A message *h* was **wronged** by *l* if h was in the queue when l left, and h ranks ahead of l. Ranks are those
of the run's starvation policy, from the time at which a message entered. Everything is judged by the order of
the orderer's own steps, so no two clocks are compared.

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
from pyspark.sql import functions as F

from priocast.core.priority import HIGHEST
from priocast.pipeline.checks.violation import violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import message_id

_NEVER = 2**63 - 1


def find(evidence: Evidence) -> DataFrame:
    """Messages that were wronged, by the policy of their run; a plain run promises nothing."""
    entered = queue(evidence).where(F.col("prioritised"))
    wronged = name_who_wronged(find_wronged(entered, evidence.priorities), entered)
    return violations(
        wronged,
        view=F.col("by.view"),
        position=F.col("by.leave_position"),
        messages=F.array("message", "by.message"),
        members=F.array("at"),
        detail=F.format_string(
            "%s (priority %d) was waiting at %s when %s (priority %d) was given position %d",
            "message",
            "priority",
            "at",
            "by.message",
            "by.priority",
            "by.leave_position",
        ),
    )


def inversions(evidence: Evidence) -> DataFrame:
    """Messages that a less urgent one left before, whatever the run promised: run, priority and how many.

    For a plain or an ageing run this is a measurement, not a fault.
    """
    entered = queue(evidence).withColumn("rank", -F.col("priority").cast("long"))
    walked = walk(entered, evidence.priorities)
    return walked.where("by.rank > rank").groupBy("run", "priority").agg(F.count(F.lit(1)).alias("overtaken"))


def queue(evidence: Evidence) -> DataFrame:
    """One row for each message that entered the orderer's queue, with its rank and when it left."""
    period = F.expr("(enter_ns - pmod(enter_ns, flush_ns)) div flush_ns")
    rank = (
        F.when(F.col("ageing_ns").isNotNull(), F.col("enter_ns") - F.col("priority") * F.col("ageing_ns"))
        .when(F.col("flush_ns").isNotNull(), period * (HIGHEST + 1) - F.col("priority"))
        .otherwise(-F.col("priority"))
    )
    return (
        evidence.ledger.where(F.col("enter_step").isNotNull())
        .join(evidence.runs, "run")
        .select(
            "run",
            "prioritised",
            F.concat("orderer", F.lit("#"), "orderer_incarnation").alias("at"),
            message_id().alias("message"),
            "priority",
            rank.cast("long").alias("rank"),
            "view",
            "enter_step",
            F.coalesce("leave_step", F.lit(_NEVER)).alias("leave_step"),
            "leave_position",
        )
    )


def walk(entered: DataFrame, priorities: tuple[int, ...]) -> DataFrame:
    """Each row with `by`, the hindmost of the last ones that left while it waited, and whether it is `in_doubt`."""
    in_order = Window.partitionBy("run", "at").orderBy("leave_step", "leave_position")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    running, met, doubts = [], [F.lit(None)], [F.lit(False)]
    for priority in priorities:
        left = (F.col("priority") == priority) & (F.col("leave_step") < _NEVER)
        step, rank, highest = f"last_step_{priority}", f"last_rank_{priority}", f"highest_{priority}"
        running += [
            F.max(F.when(left, F.col("leave_step"))).over(before).alias(step),
            F.last(F.when(left, F.col("rank")), ignorenulls=True).over(before).alias(rank),
            F.max(F.when(left, F.col("rank"))).over(before).alias(highest),
        ]
        while_waiting = F.col(step) > F.col("enter_step")
        departure = F.struct(F.col(rank).alias("rank"), F.col(step).alias("leave_step"))
        met.append(F.when(while_waiting, departure))
        doubts.append(while_waiting & (F.col(rank) <= F.col("rank")) & (F.col(highest) > F.col("rank")))
    return entered.select("*", *running).select(
        *entered.columns, F.greatest(*met).alias("by"), reduce(or_, doubts).alias("in_doubt")
    )


def find_wronged(entered: DataFrame, priorities: tuple[int, ...]) -> DataFrame:
    """The rows of `entered` that were wronged, each with `by`: the rank and the step of one that wronged it."""
    walked = walk(entered, priorities)
    doubtful = walked.where("in_doubt and by.rank <= rank").drop("by")
    return walked.where("by.rank > rank").unionByName(compare(doubtful, entered)).drop("in_doubt")


def compare(doubtful: DataFrame, entered: DataFrame) -> DataFrame:
    """The doubtful ones that were wronged after all, found pair by pair."""
    while_waiting = (F.col("l.leave_step") > F.col("h.enter_step")) & _left_before("l", "h")
    pairs = _left(entered).join(
        F.broadcast(doubtful).alias("h"),
        _one_queue() & while_waiting & (F.col("l.rank") > F.col("h.rank")),
    )
    columns = [F.col(f"h.{name}") for name in doubtful.columns]
    return pairs.groupBy(columns).agg(F.max(F.struct("l.rank", "l.leave_step")).alias("by"))


def name_who_wronged(wronged: DataFrame, entered: DataFrame) -> DataFrame:
    """`by` with everything that is known of the message: of that step and rank, the last one before."""
    same = (F.col("l.leave_step") == F.col("h.by.leave_step")) & (F.col("l.rank") == F.col("h.by.rank"))
    by = F.struct("l.leave_position", "l.message", "l.priority", "l.view")
    return (
        _left(entered)
        .join(F.broadcast(wronged).alias("h"), _one_queue() & same & _left_before("l", "h"))
        .groupBy("h.run", "h.at", "h.message", "h.priority")
        .agg(F.max(by).alias("by"))
    )


def _left(entered: DataFrame) -> DataFrame:
    return entered.where(F.col("leave_step") < _NEVER).alias("l")


def _one_queue() -> Column:
    return (F.col("l.run") == F.col("h.run")) & (F.col("l.at") == F.col("h.at"))


def _left_before(one: str, other: str) -> Column:
    """By step, and within a step by position; what never left has no position."""
    step, other_step = F.col(f"{one}.leave_step"), F.col(f"{other}.leave_step")
    position, other_position = F.col(f"{one}.leave_position"), F.col(f"{other}.leave_position")
    return (step < other_step) | ((step == other_step) & (position < other_position))
