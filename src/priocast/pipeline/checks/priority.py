"""Priority: nothing leaves a queue before what waits there and ranks ahead of it.

Judged are, in each view, the queues that go by rank: the one that decides the order, where one member has
it, and each sender's own one. A message enters the former when the orderer receives it without a position,
and leaves when the orderer sends it with one; it enters the latter with its broadcast, and leaves when its
sender first sends it. What comes from an earlier view enters a sender's queue unseen, and is not judged.

A message *h* was **wronged** by *l* if h was in the queue when l left, and h ranks ahead of l. Ranks are
those of the view's starvation policy, from the time at which a message entered. Everything is judged by the
order of one process's own steps, so no two clocks are compared.

Each view has queues of its own: what is left in them when it ends is gone from there, and enters the next
one's if its sender sends it again.

There is no join of pairs. Walking through a queue in the order of leaving, two running values per priority
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

from priocast.core.starvation import FirstInFirstOut, Strict
from priocast.pipeline.checks.violation import together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.ledger import places_it
from priocast.pipeline.sources import message_id, process_id

_NEVER = 2**63 - 1
_ENTRY = (
    "run",
    "queue_print",
    "view_print",
    "sent_by",
    "message",
    "priority",
    "rank",
    "enter_step",
    "leave_step",
    "leave_place",
)


def find(evidence: Evidence) -> DataFrame:
    """Every departure from a queue that should not have been, then."""
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
        _in_views(found.withColumnRenamed("queue_print", "view_print"), evidence),
        position=sf.col("leave_position"),
        messages=sf.array("message"),
        members=sf.array(at),
        detail=sf.concat(at, sf.lit(" gave it a position while it was not in its queue")),
    )


def overtaken(evidence: Evidence) -> DataFrame:
    """Messages that were wronged, by the policy of their view."""
    entered = queues(evidence)
    ageless = all(_is_ageless(evidence, run) for run in evidence.views_of)
    wronged = name_who_wronged(find_wronged(entered, evidence.priorities, ageless), entered)
    at_orderer = sf.col("sent_by").isNull()
    position = sf.when(at_orderer, sf.col("by.leave_place"))
    given = sf.concat(sf.lit("given position "), position.cast("string"))
    return violations(
        _in_views(wronged, evidence).withColumn("at", sf.coalesce("sent_by", "orderer")),
        position=position,
        messages=sf.array("message", "by.message"),
        members=sf.array("at"),
        detail=sf.format_string(
            "%s (priority %d) was waiting at %s when %s (priority %d) was %s",
            "message",
            "priority",
            "at",
            "by.message",
            "by.priority",
            sf.when(at_orderer, given).otherwise(sf.lit("sent")),
        ),
    )


def queues(evidence: Evidence) -> DataFrame:
    """One row for each time that a message entered a queue, with its rank and when it left.

    `sent_by` says whose queue it is, null for the one that decides the order; `leave_place` is the place of
    a message among those that left in one step.
    """
    entered = ordering_queues(evidence).unionByName(sending_queues(evidence))
    return entered.withColumn("leave_step", sf.coalesce("leave_step", sf.lit(_NEVER)))


def ordering_queues(evidence: Evidence) -> DataFrame:
    """What waited where the order is decided."""

    def entries(messages: DataFrame) -> DataFrame:
        return (
            messages.where(sf.col("enter_step").isNotNull())
            .withColumns(
                {
                    "message": message_id(),
                    "view_print": sf.col("queue_print"),
                    "sent_by": sf.lit(None).cast("string"),
                    "leave_place": sf.col("leave_position"),
                }
            )
            .select(*_ENTRY)
        )

    found = entries(evidence.ledger.where("not requeued"))
    return found if evidence.requeued is None else found.unionByName(entries(evidence.requeued))


def sending_queues(evidence: Evidence) -> DataFrame:
    """What waited at its own sender; who sends it first in another view has not let it out in this one."""
    left = sf.col("take_print") == sf.col("offer_print")
    whose = (sf.col("offer_print"), sf.col("sender"), sf.col("sender_incarnation"))
    offered = evidence.ledger.where(sf.col("offer_step").isNotNull())
    return offered.withColumns(
        {
            "message": message_id(),
            "queue_print": sf.xxhash64(*whose),
            "view_print": sf.col("offer_print"),
            "sent_by": process_id("sender", "sender_incarnation"),
            "rank": sf.col("offer_rank"),
            "enter_step": sf.col("offer_step"),
            "leave_step": sf.when(left, sf.col("take_step")),
            "leave_place": sf.col("take_index").cast("long"),
        }
    ).select(*_ENTRY)


def walk(entered: DataFrame, priorities: tuple[int, ...]) -> DataFrame:
    """Each row with `by`, the hindmost of the last that left while it waited, and whether it is in doubt."""
    in_order = Window.partitionBy("run", "queue_print").orderBy("leave_step", "leave_place")
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
    by = sf.struct("l.leave_place", "l.message", "l.priority")
    return (
        _left(entered)
        .join(sf.broadcast(wronged).alias("h"), _one_queue() & same & _left_before("l", "h"))
        .groupBy("h.run", "h.view_print", "h.sent_by", "h.message", "h.priority")
        .agg(sf.max(by).alias("by"))
    )


def _is_ageless(evidence: Evidence, run: str) -> bool:
    """Whether all of a priority have one rank; what was sent in a plain view and then in another, has two."""
    policies = {view.order.policy for view in evidence.views_of[run].values()}
    return policies <= {str(Strict())} or policies == {str(FirstInFirstOut())}


def _in_views(found: DataFrame, evidence: Evidence) -> DataFrame:
    """What was found, with the view and its orderer."""
    known = evidence.views.select("run", "view_print", "view", "coordinator", "orderer")
    return found.join(known, ["run", "view_print"])


def _left(entered: DataFrame) -> DataFrame:
    return entered.where(sf.col("leave_step") < _NEVER).alias("l")


def _one_queue() -> Column:
    return (sf.col("l.run") == sf.col("h.run")) & (sf.col("l.queue_print") == sf.col("h.queue_print"))


def _left_before(one: str, other: str) -> Column:
    """By step, and within a step by place; what never left has no place."""
    step, other_step = sf.col(f"{one}.leave_step"), sf.col(f"{other}.leave_step")
    place, other_place = sf.col(f"{one}.leave_place"), sf.col(f"{other}.leave_place")
    return (step < other_step) | ((step == other_step) & (place < other_place))
