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
be. So h must not be at or before that position; and the last less urgent message before h, one running value
for each level, must not be after it.

Members may have passed messages that they did not deliver: those that are not for them, and those that they
kept, or that the state covered, when they joined. A member *may* have reached everything before its next
delivery. A joining member may have reached anything before it has the state, and then as many messages as it
had received, or as the state covers. (One that stopped before it had the state is recognised by having
delivered nothing.) Less urgent messages up to there may be before h. So may any if h may have arrived at a
member whose record is truncated.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.core.priority import HIGHEST
from priocast.pipeline.checks.fifo import agreed_order
from priocast.pipeline.message_table import is_reference
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_id
from priocast.pipeline.trace_tables import TraceTables, with_view_hash
from priocast.pipeline.violations import names, union, violations
from priocast.trace.schema import DELIVERED, RECEIVED

_EVERYTHING = 2**62
_NOTHING = -1
_VIEW = ("run", "view_hash")
_IN_VIEW = (*MESSAGE_KEY, "view_hash")
_MEMBERS_SCHEMA = """run string, view long, coordinator string, process string, dropped_out boolean,
    truncated boolean, last_delivered long, selective boolean, first_position long, state_step long,
    state_position long"""


def find(trace: TraceTables) -> DataFrame:
    """Every message whose position contradicts what had been consumed when it arrived."""
    rows = list(_members(trace))
    if not rows:
        return union(trace)
    members = sf.broadcast(
        with_view_hash(small_table(trace.spark, rows, _MEMBERS_SCHEMA)).drop("view", "coordinator")
    )
    order = positions(trace, members)
    arrived = arrivals(progress(trace.batches, order, members))
    judged = between_levels(with_reach(order, arrived, members), sorted({*trace.priorities, HIGHEST}))
    other = (
        sf.when(~_is_early(), sf.col("before"))
        .when(sf.col("after") <= sf.col("reached"), sf.col("after"))
        .alias("other")
    )
    found = judged.where(_is_early() | (sf.col("before") > sf.col("may_reach"))).select("*", other)
    return union(trace, [report(with_other(found, order), trace)])


def _members(trace: TraceTables) -> Iterator[tuple[object, ...]]:
    """The members of the checked views, with what hides their consumption from the record."""
    for run in trace.runs:
        history, truncated = trace.histories[run.name], trace.truncated_processes(run)
        for view in trace.views_of[run.name].values():
            if not view.consumes_by_priority:
                continue
            for each in view.participations:
                process = history.processes.get(each.process)
                state = process.states[-1] if process and process.states else None
                span = process.delivered.get(view.name) if process else None
                dropped_out = each.dropped_out and view.survived
                never_had_state = dropped_out and view.name.number > 1 and not (process and process.delivered)
                yield (
                    run.name,
                    *view.name,
                    each.process,
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
    lines = trace.messages.where("deliveries > 0").select(*MESSAGE_KEY, "in_line")
    return (
        agreed_order(trace)
        .join(members.select(*_VIEW).distinct(), list(_VIEW), "left_semi")
        .join(lines, list(MESSAGE_KEY))
        .select(*_IN_VIEW, "position", urgency.alias("urgency"), message_id().alias("message"))
    )


def progress(batches: DataFrame, order: DataFrame, members: DataFrame) -> DataFrame:
    """What the members of the checked views received and delivered, batch by batch.

    `start` and `end` are the positions of what was delivered. A member that dropped out may have had other
    positions for it: its deliveries are looked up one by one.
    """
    is_delivery = sf.col("event") == DELIVERED
    arrives = (sf.col("event") == RECEIVED) & ~is_reference()
    here = batches.where(is_delivery | arrives).join(members, [*_VIEW, "process"])
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


def arrivals(progress: DataFrame) -> DataFrame:
    """For each message that arrived anywhere: how far the members had reached then, or may have."""
    of_member = Window.partitionBy(*_VIEW, "process")
    until = of_member.orderBy("step").rowsBetween(Window.unboundedPreceding, -1)
    # Backwards: a frame that ends with the partition is computed anew for each row.
    onward = of_member.orderBy(sf.desc("step")).rowsBetween(Window.unboundedPreceding, -1)
    had_no_state = sf.col("step") < sf.col("state_step")
    kept = sf.coalesce(sf.sum(sf.when(had_no_state & _arrives(), sf.col("count"))).over(of_member), sf.lit(0))
    upcoming = sf.coalesce(sf.min("start").over(onward), sf.lit(_EVERYTHING))
    may_reach = sf.greatest(
        "reached",
        sf.when(had_no_state, sf.lit(_EVERYTHING)),
        sf.col("state_position") - 1,
        sf.when(sf.col("state_step").isNotNull(), sf.col("first_position") + kept - 1),
        sf.when(sf.col("selective"), upcoming - 1),
    )
    arrived = (
        progress.withColumn("reached", sf.coalesce(sf.max("end").over(until), sf.lit(_NOTHING)))
        .withColumn("may_reach", may_reach)
        .where(_arrives())
    )
    return (
        explode_batches(arrived)
        .groupBy(*_IN_VIEW)
        .agg(
            sf.max(sf.struct("reached", "process")).alias("farthest"),
            sf.max("may_reach").alias("may_reach"),
            sf.collect_set("process").alias("arrived_at"),
        )
    )


def with_reach(order: DataFrame, arrived: DataFrame, members: DataFrame) -> DataFrame:
    """The messages with how far any member had reached when each arrived, or may have; and which member.

    A member that never received a message had reached everything that it delivered.
    """
    everybody = members.groupBy(*_VIEW).agg(
        sf.collect_list(sf.struct("last_delivered", "process", "truncated")).alias("everybody")
    )
    arrived_at = sf.coalesce("arrived_at", sf.array().cast("array<string>"))
    absent = sf.filter("everybody", lambda member: ~sf.array_contains(arrived_at, member["process"]))
    known = sf.filter("absent", lambda member: ~member["truncated"])
    at_last = sf.transform(
        known, lambda member: sf.struct(member["last_delivered"].alias("reached"), member["process"])
    )
    everything = sf.when(sf.exists("absent", lambda member: member["truncated"]), sf.lit(_EVERYTHING))
    return (
        order.join(arrived, list(_IN_VIEW), "left")
        .join(sf.broadcast(everybody), list(_VIEW))
        .withColumn("absent", absent)
        .withColumn("farthest", sf.greatest("farthest", sf.array_max(at_last)))
        .select(
            *order.columns,
            sf.coalesce("farthest.reached", sf.lit(_NOTHING)).alias("reached"),
            "farthest.process",
            sf.greatest("may_reach", "farthest.reached", everything, sf.lit(_NOTHING)).alias("may_reach"),
        )
    )


def between_levels(messages: DataFrame, urgencies: Sequence[int]) -> DataFrame:
    """The messages with the positions of the nearest less urgent ones on both sides."""
    of_view = Window.partitionBy(*_VIEW)
    until = of_view.orderBy("position").rangeBetween(Window.unboundedPreceding, -1)
    onward = of_view.orderBy(sf.desc("position")).rangeBetween(Window.unboundedPreceding, -1)
    before, after = [sf.lit(None)], [sf.lit(None)]
    for urgency in urgencies:
        of_level = sf.when(sf.col("urgency") == urgency, sf.col("position"))
        is_lower = sf.col("urgency") > urgency
        before.append(sf.when(is_lower, sf.max(of_level).over(until)))
        after.append(sf.when(is_lower, sf.min(of_level).over(onward)))
    return messages.select("*", sf.greatest(*before).alias("before"), sf.least(*after).alias("after"))


def with_other(found: DataFrame, order: DataFrame) -> DataFrame:
    """The findings with the less urgent message at the position `other`, if there is such a position."""
    lower = (
        (sf.col("found.run") == sf.col("order.run"))
        & (sf.col("found.view_hash") == sf.col("order.view_hash"))
        & (sf.col("found.other") == sf.col("order.position"))
        & (sf.col("found.urgency") > sf.col("order.urgency"))
    )
    columns = [sf.col(f"found.{name}") for name in found.columns]
    return (
        found.alias("found")
        .join(order.alias("order"), lower, "left")
        .groupBy(columns)
        .agg(sf.min(sf.struct("order.message", "order.urgency")).alias("less"))
        .withColumns({"other_message": sf.col("less.message"), "other_urgency": sf.col("less.urgency")})
    )


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
