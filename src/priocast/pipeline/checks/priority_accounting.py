"""Priority accounting: a less urgent message goes first exactly if some member had consumed it.

Checked are the views whose protocol lets priorities act where messages are consumed, and that are not plain.
Let l be less urgent than h, and let both have positions in the view (see FIFO among equals). Then l is before
h if, and only if, some member of the view had *passed* l when h arrived at it: it had delivered l, or a
message at a later position. h arrives at a member with the packet that carries it, also at its sender; a
member that never received h passed everything that it delivered. Members that dropped out of the view count
like any other; their deliveries count at the positions that the others have for them. Everything is judged by
each member's own steps.

No pairs are joined. What a member consumes is a prefix of one order, so one number says how far any of them
had *reached* when h arrived: everything up to there must be before h, and nothing less urgent after it may
be. So h must not be at or before that position; and the last less urgent message before h (see
`nearest_lower`) must not be after it.

Members may have passed messages that they did not deliver: those that are not for them, and those that they
kept, or that the state covered, when they joined. A member *may* have reached everything before its next
delivery. A joining member may have reached anything before it has the state, and then as many messages as it
had received, or as the state covers. (One that stopped before it had the state is recognised by having
delivered nothing.) Less urgent messages up to there may be before h. So may any if h may have arrived at a
member whose record is truncated.
"""

from collections.abc import Iterator
from functools import reduce
from operator import and_, attrgetter, or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.window import WindowSpec

from priocast.core.priority import HIGHEST
from priocast.pipeline.checks.fifo import agreed_order
from priocast.pipeline.message_table import is_reference
from priocast.pipeline.nearest_lower import with_nearest_lower
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import explode_batches, hash_of_process, message_id
from priocast.pipeline.trace_tables import TraceTables, bit_of, with_view_hash
from priocast.pipeline.violations import names, union, violations
from priocast.trace.schema import DELIVERED, RECEIVED

_EVERYTHING = 2**62
_NOTHING = -1
_VIEW = ("run", "view_hash")
_IN_VIEW = ("sender_hash", "level", "number", "view_hash")
_MEMBERS_SCHEMA = """run string, view long, coordinator string, process string, rank long, word int, bit long,
    dropped_out boolean, truncated boolean, last_delivered long, selective boolean, first_position long,
    state_step long, state_position long"""
_RANK_BITS = 16


class _Member(NamedTuple):
    """A member of a checked view, with what hides its consumption from the record."""

    run: str
    view: int
    coordinator: str
    process: str
    rank: int
    word: int
    bit: int
    dropped_out: bool
    truncated: bool
    last_delivered: int
    selective: bool
    first_position: int
    state_step: int | None
    state_position: int | None


def find(trace: TraceTables) -> DataFrame:
    """Every message whose position contradicts what had been consumed when it arrived."""
    rows = list(_members(trace))
    if not rows:
        return union(trace)
    known = with_view_hash(small_table(trace.spark, rows, _MEMBERS_SCHEMA)).drop("view", "coordinator")
    members = sf.broadcast(known.withColumn("process_hash", hash_of_process("run", sf.col("process"))))
    order = positions(trace, members)
    is_hidden = any(row.selective or row.state_step is not None for row in rows)
    arrived = arrivals(progress(trace.batches, order, members), trace.words, is_hidden)
    reached = with_reach(order, arrived, members, trace.words)
    judged = with_nearest_lower(reached, _VIEW, sorted({*trace.priorities, HIGHEST}))
    other = (
        sf.when(~_is_early(), sf.col("before"))
        .when(sf.col("after") <= sf.col("reached"), sf.col("after"))
        .alias("other")
    )
    found = judged.where(_is_early() | (sf.col("before") > sf.col("may_reach"))).select("*", other)
    return union(trace, [report(with_names(found, order, members, trace), trace)])


def _members(trace: TraceTables) -> Iterator[_Member]:
    """The members of the checked views."""
    for run in trace.runs:
        history, truncated = trace.histories[run.name], trace.truncated_processes(run)
        for view in trace.views_of[run.name].values():
            if not view.consumes_by_priority:
                continue
            for rank, each in enumerate(sorted(view.participations, key=attrgetter("process"))):
                process = history.processes.get(each.process)
                state = process.states[-1] if process and process.states else None
                span = process.delivered.get(view.name) if process else None
                dropped_out = each.dropped_out and view.survived
                never_had_state = dropped_out and view.name.number > 1 and not (process and process.delivered)
                yield _Member(
                    run.name,
                    *view.name,
                    each.process,
                    rank,
                    *bit_of(rank),
                    dropped_out,
                    each.process in truncated,
                    span.position_last if span else _NOTHING,
                    bool(history.recipient_lists),
                    view.first_position,
                    state.step if state else _EVERYTHING if never_had_state else None,
                    state.position if state else None,
                )


def positions(trace: TraceTables, members: DataFrame) -> DataFrame:
    """The messages of the checked views: the position and the urgency of each."""
    urgency = sf.when(sf.col("in_line"), sf.lit(HIGHEST)).otherwise(sf.col("level"))
    return (
        agreed_order(trace, keep=("in_line",))
        .join(members.select(*_VIEW).distinct(), list(_VIEW), "left_semi")
        .select("run", *_IN_VIEW, "position", urgency.alias("urgency"))
    )


def progress(batches: DataFrame, order: DataFrame, members: DataFrame) -> DataFrame:
    """What the members of the checked views received and delivered, batch by batch.

    `start` and `end` are the positions of what was delivered. A member that dropped out may have had other
    positions for it: its deliveries are looked up one by one.
    """
    is_delivery = sf.col("event") == DELIVERED
    arrives = (sf.col("event") == RECEIVED) & ~is_reference()
    here = batches.where(is_delivery | arrives).join(
        members.drop("run", "process"), ["process_hash", "view_hash"]
    )
    to_look_up = sf.col("dropped_out") & is_delivery
    own = here.where(~to_look_up).withColumns(
        {
            "start": sf.when(is_delivery, sf.col("position")),
            "end": sf.when(is_delivery, sf.col("position") + sf.col("count") - 1),
        }
    )
    agreed = order.select(*_IN_VIEW, sf.col("position").alias("start"), sf.col("position").alias("end"))
    looked_up = explode_batches(here.where(to_look_up)).join(agreed, list(_IN_VIEW))
    return own.unionByName(looked_up.select(own.columns))


def arrivals(progress: DataFrame, words: range, is_hidden: bool) -> DataFrame:
    """For each message that arrived anywhere: how far the members had reached then, or may have; and where.

    If nothing is hidden from the record, members may have reached only what they had.
    """
    of_member = Window.partitionBy("process_hash", "view_hash")
    until = of_member.orderBy("step").rowsBetween(Window.unboundedPreceding, -1)
    arrived = progress.withColumn("reached", sf.coalesce(sf.max("end").over(until), sf.lit(_NOTHING)))
    may_reach = _may_reach(of_member) if is_hidden else sf.col("reached")
    arrived = arrived.withColumn("may_reach", may_reach).where(_arrives())
    return (
        # In a task of its own: an aggregation does not give back memory that the window needs.
        explode_batches(arrived)
        .repartition(*_IN_VIEW)
        .groupBy(*_IN_VIEW)
        .agg(
            sf.max(_farthest("reached", "rank")).alias("farthest"),
            sf.max("may_reach").alias("may_reach"),
            *(
                sf.coalesce(sf.bit_or(sf.when(sf.col("word") == word, sf.col("bit"))), sf.lit(0)).alias(
                    f"arrived_{word}"
                )
                for word in words
            ),
        )
    )


def _may_reach(of_member: WindowSpec) -> Column:
    """How far a member may have reached in a row."""
    # Backwards: a frame that ends with the partition is computed anew for each row.
    onward = of_member.orderBy(sf.desc("step")).rowsBetween(Window.unboundedPreceding, -1)
    had_no_state = sf.col("step") < sf.col("state_step")
    kept = sf.coalesce(sf.sum(sf.when(had_no_state & _arrives(), sf.col("count"))).over(of_member), sf.lit(0))
    upcoming = sf.coalesce(sf.min("start").over(onward), sf.lit(_EVERYTHING))
    return sf.greatest(
        "reached",
        sf.when(had_no_state, sf.lit(_EVERYTHING)),
        sf.col("state_position") - 1,
        sf.when(sf.col("state_step").isNotNull(), sf.col("first_position") + kept - 1),
        sf.when(sf.col("selective"), upcoming - 1),
    )


def with_reach(order: DataFrame, arrived: DataFrame, members: DataFrame, words: range) -> DataFrame:
    """The messages with how far any member had reached when each arrived, or may have; and which member.

    A member that never received a message had reached everything that it delivered.
    """
    everybody = members.groupBy(*_VIEW).agg(
        sf.collect_list(
            sf.struct("word", "bit", _farthest("last_delivered", "rank").alias("farthest"), "truncated")
        ).alias("everybody"),
        *(sf.sum(sf.when(sf.col("word") == word, sf.col("bit"))).alias(f"all_{word}") for word in words),
    )

    def is_absent(member: Column) -> Column:
        missing = [
            (member["word"] == word)
            & (sf.coalesce(f"arrived_{word}", sf.lit(0)).bitwiseAND(member["bit"]) == 0)
            for word in words
        ]
        return reduce(or_, missing)

    at_all = reduce(and_, (sf.col(f"arrived_{word}") == sf.col(f"all_{word}") for word in words))
    absent = sf.when(~sf.coalesce(at_all, sf.lit(False)), sf.filter("everybody", is_absent))
    known = sf.filter("absent", lambda member: ~member["truncated"])
    at_last = sf.array_max(sf.transform(known, lambda member: member["farthest"]))
    everything = sf.when(sf.exists("absent", lambda member: member["truncated"]), sf.lit(_EVERYTHING))
    reached = sf.coalesce(sf.shiftright("farthest", _RANK_BITS), sf.lit(_NOTHING))
    return (
        order.join(arrived, list(_IN_VIEW), "left")
        .join(sf.broadcast(everybody), list(_VIEW))
        .withColumn("absent", absent)
        .withColumn("farthest", sf.greatest("farthest", at_last))
        .select(
            *(order[name] for name in order.columns),
            reached.alias("reached"),
            sf.col("farthest").bitwiseAND(2**_RANK_BITS - 1).alias("rank"),
            sf.greatest("may_reach", reached, everything, sf.lit(_NOTHING)).alias("may_reach"),
        )
    )


def _farthest(reached: str, rank: str) -> Column:
    """A position and the rank of who reached it, as one number: the greatest is that of the farthest."""
    return sf.shiftleft(sf.col(reached), _RANK_BITS).bitwiseOR(sf.col(rank))


def with_names(found: DataFrame, order: DataFrame, members: DataFrame, trace: TraceTables) -> DataFrame:
    """The findings with names: of the message, of who reached farthest, and of the less urgent message.

    The latter is the one at the position `other`, if there is such a position.
    """
    lower = (
        (sf.col("found.run") == sf.col("order.run"))
        & (sf.col("found.view_hash") == sf.col("order.view_hash"))
        & (sf.col("found.other") == sf.col("order.position"))
        & (sf.col("found.urgency") > sf.col("order.urgency"))
    )
    named = _named(found, trace).join(members.select(*_VIEW, "rank", "process"), [*_VIEW, "rank"], "left")
    columns = [sf.col(f"found.{name}") for name in named.columns]
    return (
        named.alias("found")
        .join(_named(order, trace).alias("order"), lower, "left")
        .groupBy(columns)
        .agg(sf.min(sf.struct("order.message", "order.urgency")).alias("less"))
        .withColumns({"other_message": sf.col("less.message"), "other_urgency": sf.col("less.urgency")})
    )


def _named(messages: DataFrame, trace: TraceTables) -> DataFrame:
    senders = sf.broadcast(trace.senders.drop("run"))
    named = messages.join(senders, "sender_hash").withColumn("message", message_id())
    return named.drop("sender", "sender_incarnation")


def report(found: DataFrame, trace: TraceTables) -> DataFrame:
    """The violations: messages that are too early (a member had passed their position) or too late."""
    both = ("message", "urgency", "position", "other_message", "other_urgency", "other")
    ahead = sf.format_string(
        "%s (urgency %d) is at %d, before %s (urgency %d) at %d, but %s had reached %d when it arrived there",
        *both,
        "process",
        "reached",
    )
    passed = sf.format_string(
        "%s is at %d, but %s had reached %d when it arrived there",
        "message",
        "position",
        "process",
        "reached",
    )
    behind = sf.format_string(
        "%s (urgency %d) is at %d, behind %s (urgency %d) at %d, but none of %s had got there when it came",
        *both,
        names("members"),
    )
    early = sf.when(sf.col("other").isNull(), passed).otherwise(ahead)
    known = trace.views.select(*_VIEW, "view", "coordinator", "members")
    return violations(
        found.join(known, list(_VIEW)),
        position=sf.col("position"),
        messages=sf.array_compact(sf.array("message", "other_message")),
        members=sf.when(_is_early(), sf.array("process")).otherwise(sf.array_sort("members")),
        summary=sf.when(_is_early(), early).otherwise(behind),
    )


def _is_early() -> Column:
    return sf.col("reached") >= sf.col("position")


def _arrives() -> Column:
    return sf.col("event") == RECEIVED
