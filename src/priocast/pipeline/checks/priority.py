"""Priority: nothing leaves a queue while a message with a lower sort key waits there.

Checked are, in each view, the queues that are ordered by a sort key: the ordering queue, if one member orders
alone, and each sender's own queue. A message enters the former when the orderer receives it without a
position, and leaves it when the orderer sends it with one. It enters the latter with its broadcast, and
leaves it when its sender first sends it. A message from an earlier view enters a sender's queue without a
record, and is not checked.

A message *h* was **overtaken wrongly** by *l* if h was in the queue when l left and h has the lower sort key.
The sort keys are those of the view's starvation policy, at the time at which a message entered. Everything is
judged by the order of one process's own steps, so no two clocks are compared.

Each view has its own queues: what remains in them when the view ends is gone, and enters the queue of the
next view if its sender sends it again.

No pairs are joined. Walking through a queue in the order of departure, two running values for each priority
suffice: the *last* message of that priority that left, and the *highest* sort key that left. A message of
that priority left while h waited exactly if the last one did, and

- if the last one has a higher sort key than h, it overtook h wrongly;
- if not even the highest sort key is higher than that of h, nothing of that priority did;
- otherwise, that priority itself left out of order, so the run is in violation already. To count and name h
  exactly, these messages (and only these) are compared with what left while they waited.

Under `none` all messages of a priority have the same sort key, and the third case does not exist.

Many priorities would be many running values: 7 seconds for 4 priorities were 163 for 256. If there are more
than a few, the last departure with a higher sort key is found by the digits of the key (`running_digits`).
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.window import WindowSpec

from priocast.core.priority import HIGHEST
from priocast.core.starvation import FirstInFirstOut, Strict
from priocast.pipeline.message_table import is_queue_of_delivery
from priocast.pipeline.running_digits import with_last_above
from priocast.pipeline.sources import message_id, process_id
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import union, violations

_NEVER = 2**63 - 1
#: Up to so many priorities, a few running values for each cost less than two walks by digits.
_PRIORITIES_WALKED_MAX = 16
_ENTRY = (
    "run",
    "queue_hash",
    "view_hash",
    "is_sent",
    "message",
    "priority",
    "sort_key",
    "enter_step",
    "leave_step",
    "leave_index",
)


def find(trace: TraceTables) -> DataFrame:
    """Every departure from a queue that must not have been at that time."""
    tables = []
    if trace.any("queue_entries"):
        tables.append(overtaken(trace))
    if trace.any("unqueued") or trace.requeued is not None:
        tables.append(not_in_queue(trace))
    return union(trace, tables)


def not_in_queue(trace: TraceTables) -> DataFrame:
    """Messages that the orderer gave a position while they were not in its queue.

    If it sends a message again that was ordered in another view, it assigns no position.
    """
    found = trace.messages.where("unqueued").select(
        "run", "queue_hash", message_id().alias("message"), "leave_position"
    )
    if trace.requeued is not None:
        entered_late = sf.coalesce(sf.col("leave_step") < sf.col("enter_step"), sf.lit(True))
        again = trace.requeued.where(sf.col("leave_step").isNotNull() & entered_late & is_queue_of_delivery())
        found = found.unionByName(again.withColumn("message", message_id()).select(found.columns))
    orderer = sf.col("orderer")
    return violations(
        _in_views(found.withColumnRenamed("queue_hash", "view_hash"), trace),
        position=sf.col("leave_position"),
        messages=sf.array("message"),
        members=sf.array(orderer),
        summary=sf.concat(orderer, sf.lit(" gave it a position while it was not in its queue")),
    )


def overtaken(trace: TraceTables) -> DataFrame:
    """Messages that were overtaken wrongly, by the starvation policy of their view."""
    entries = queue_entries(trace)
    constant = all(_has_constant_keys(trace, run) for run in trace.views_of)
    found = name_overtaker(find_overtaken(entries, trace.priorities, constant), entries)
    named = with_names(_in_views(found, trace), trace)
    position = sf.when(~sf.col("is_sent"), sf.col("by.leave_index"))
    ordered = sf.concat(sf.lit("given position "), position.cast("string"))
    return violations(
        named.withColumn("at", sf.when(sf.col("is_sent"), sf.col("sender")).otherwise(sf.col("orderer"))),
        position=position,
        messages=sf.array("name", "by_name"),
        members=sf.array("at"),
        summary=sf.format_string(
            "%s (priority %d) was waiting at %s when %s (priority %d) was %s",
            "name",
            "priority",
            "at",
            "by_name",
            "by.priority",
            sf.when(sf.col("is_sent"), sf.lit("sent")).otherwise(ordered),
        ),
    )


def with_names(found: DataFrame, trace: TraceTables) -> DataFrame:
    """The findings with the names of both messages, and with the `sender` of the one that was overtaken."""
    sender = process_id("sender", "sender_incarnation")
    known = sf.broadcast(trace.senders.select("sender_hash", sender.alias("sender")))
    other = known.withColumnsRenamed({"sender_hash": "by_hash", "sender": "by_sender"})

    def name(sender: str, message: str) -> Column:
        return sf.concat_ws("/", sender, f"{message}.level", f"{message}.number")

    return (
        found.withColumns(
            {"sender_hash": sf.col("message.sender_hash"), "by_hash": sf.col("by.message.sender_hash")}
        )
        .join(known, "sender_hash")
        .join(other, "by_hash")
        .withColumns({"name": name("sender", "message"), "by_name": name("by_sender", "by.message")})
    )


def queue_entries(trace: TraceTables) -> DataFrame:
    """One row for each time that a message entered a queue, with its sort key and when it left.

    `is_sent` says that it is a sender's queue, not the ordering queue. `leave_index` orders the messages that
    left in one step. A message is numbers here, which take less to sort than its name.
    """
    entries = ordering_queues(trace).unionByName(sending_queues(trace))
    return entries.withColumn("leave_step", sf.coalesce("leave_step", sf.lit(_NEVER)))


def ordering_queues(trace: TraceTables) -> DataFrame:
    """The messages that waited where the order is decided."""

    def entries(messages: DataFrame) -> DataFrame:
        return (
            messages.where(sf.col("enter_step").isNotNull())
            .withColumns(
                {
                    "message": _numbered(),
                    "view_hash": sf.col("queue_hash"),
                    "is_sent": sf.lit(False),
                    "leave_index": sf.col("leave_position"),
                }
            )
            .select(*_ENTRY)
        )

    found = entries(trace.messages.where("not requeued"))
    return found if trace.requeued is None else found.unionByName(entries(trace.requeued))


def _numbered() -> Column:
    return sf.struct("sender_hash", "level", "number")


def sending_queues(trace: TraceTables) -> DataFrame:
    """The messages that waited at their sender; one that is first sent in a later view never left here."""
    left = sf.col("take_hash") == sf.col("offer_hash")
    offered = trace.messages.where(sf.col("offer_step").isNotNull())
    return offered.withColumns(
        {
            "message": _numbered(),
            "queue_hash": sf.xxhash64("offer_hash", "sender_hash"),
            "view_hash": sf.col("offer_hash"),
            "is_sent": sf.lit(True),
            "sort_key": sf.col("offer_key"),
            "enter_step": sf.col("offer_step"),
            "leave_step": sf.when(left, sf.col("take_step")),
            "leave_index": sf.col("take_index").cast("long"),
        }
    ).select(*_ENTRY)


def walk(entries: DataFrame, priorities: tuple[int, ...]) -> DataFrame:
    """Each entry with `by`, the highest sort key among the last departures while it waited.

    `in_doubt` marks the third case of the module's docstring.
    """
    in_order = Window.partitionBy("run", "queue_hash").orderBy("leave_step", "leave_index")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    running, last_departures, doubts = [], [sf.lit(None)], [sf.lit(False)]
    for priority in priorities:
        left = (sf.col("priority") == priority) & (sf.col("leave_step") < _NEVER)
        step, key, highest = f"last_step_{priority}", f"last_key_{priority}", f"highest_{priority}"
        running += [
            sf.max(sf.when(left, sf.col("leave_step"))).over(before).alias(step),
            sf.last(sf.when(left, sf.col("sort_key")), ignorenulls=True).over(before).alias(key),
            sf.max(sf.when(left, sf.col("sort_key"))).over(before).alias(highest),
        ]
        while_waiting = sf.col(step) > sf.col("enter_step")
        departure = sf.struct(sf.col(key).alias("sort_key"), sf.col(step).alias("leave_step"))
        last_departures.append(sf.when(while_waiting, departure))
        own_key = sf.col("sort_key")
        doubts.append(while_waiting & (sf.col(key) <= own_key) & (sf.col(highest) > own_key))
    return entries.select("*", *running).select(
        *entries.columns, sf.greatest(*last_departures).alias("by"), reduce(or_, doubts).alias("in_doubt")
    )


def walk_by_digits(entries: DataFrame, lowest: int, highest: int) -> DataFrame:
    """Each entry with `last`, the step of the last departure before its own that has a higher sort key.

    `lowest` and `highest` are the bounds of the sort keys.
    """

    def before(spec: WindowSpec) -> WindowSpec:
        in_order = spec.orderBy("leave_step", "leave_index")
        return in_order.rowsBetween(Window.unboundedPreceding, -1)

    left = sf.when(sf.col("leave_step") < _NEVER, sf.col("leave_step"))
    above_lowest = sf.col("sort_key") - lowest
    return with_last_above(
        entries, ["run", "queue_hash"], before, above_lowest, highest - lowest, left, "last"
    )


def find_overtaken(entries: DataFrame, priorities: tuple[int, ...], constant: bool = False) -> DataFrame:
    """The entries that were overtaken wrongly; `by` has the step of one that overtook, and its sort key."""
    if len(priorities) > _PRIORITIES_WALKED_MAX:
        last_key = sf.lit(None).cast("long").alias("sort_key")
        by = sf.struct(last_key, sf.col("last").alias("leave_step"))
        overtaken = walk_by_digits(entries, *_bounds(entries, constant)).where("last > enter_step")
        return overtaken.withColumn("by", by).drop("last")
    walked = walk(entries, priorities)
    overtaken = walked.where("by.sort_key > sort_key")
    if not constant:
        doubtful = walked.where("in_doubt and by.sort_key <= sort_key").drop("by")
        overtaken = overtaken.unionByName(compare(doubtful, entries))
    return overtaken.drop("in_doubt")


def _bounds(entries: DataFrame, constant: bool) -> tuple[int, int]:
    """The lowest and the highest sort key that there can be."""
    if constant:
        return -HIGHEST, 0
    (row,) = entries.agg(sf.min("sort_key"), sf.max("sort_key")).collect()
    return row[0] or 0, row[1] or 0


def compare(doubtful: DataFrame, entries: DataFrame) -> DataFrame:
    """The doubtful entries that were overtaken wrongly after all, found pair by pair."""
    while_waiting = (sf.col("l.leave_step") > sf.col("h.enter_step")) & _left_before("l", "h")
    pairs = _departures(entries).join(
        sf.broadcast(doubtful).alias("h"),
        _same_queue() & while_waiting & (sf.col("l.sort_key") > sf.col("h.sort_key")),
    )
    columns = [sf.col(f"h.{name}") for name in doubtful.columns]
    return pairs.groupBy(columns).agg(sf.max(sf.struct("l.sort_key", "l.leave_step")).alias("by"))


def name_overtaker(overtaken: DataFrame, entries: DataFrame) -> DataFrame:
    """Replace `by` by the message that overtook: the last one of that step and sort key before the entry."""
    same_step = sf.col("l.leave_step") == sf.col("h.by.leave_step")
    higher = sf.col("l.sort_key") > sf.col("h.sort_key")
    same_key = higher & (sf.col("l.sort_key") == sf.coalesce("h.by.sort_key", "l.sort_key"))
    by = sf.struct("l.leave_index", "l.message", "l.priority")
    return (
        _departures(entries)
        .join(
            sf.broadcast(overtaken).alias("h"), _same_queue() & same_step & same_key & _left_before("l", "h")
        )
        .groupBy("h.run", "h.view_hash", "h.is_sent", "h.message", "h.priority")
        .agg(sf.max(by).alias("by"))
    )


def _has_constant_keys(trace: TraceTables, run: str) -> bool:
    """Whether all messages of a priority have one sort key.

    A message that is sent in a plain view and then in another has two.
    """
    policies = {view.order.policy for view in trace.views_of[run].values()}
    return policies <= {str(Strict())} or policies == {str(FirstInFirstOut())}


def _in_views(found: DataFrame, trace: TraceTables) -> DataFrame:
    """The findings with their view and its orderer."""
    known = trace.views.select("run", "view_hash", "view", "coordinator", "orderer")
    return found.join(known, ["run", "view_hash"])


def _departures(entries: DataFrame) -> DataFrame:
    return entries.where(sf.col("leave_step") < _NEVER).alias("l")


def _same_queue() -> Column:
    return (sf.col("l.run") == sf.col("h.run")) & (sf.col("l.queue_hash") == sf.col("h.queue_hash"))


def _left_before(one: str, other: str) -> Column:
    """By step, and within a step by index; an entry that never left has no index."""
    step, other_step = sf.col(f"{one}.leave_step"), sf.col(f"{other}.leave_step")
    index, other_index = sf.col(f"{one}.leave_index"), sf.col(f"{other}.leave_index")
    return (step < other_step) | ((step == other_step) & (index < other_index))
