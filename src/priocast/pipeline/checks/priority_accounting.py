"""Priority accounting: what is less urgent goes first exactly if some member had consumed it.

Judged are views whose class lets priorities act where messages are consumed, and that are not plain. Let l be
less urgent than h, and let both have their places in the view (see FIFO among equals). Then l is before h if,
and only if, some member of the view had *got past* l when h came to it: it had delivered l, or something at a
later place. h comes to a member with the packet that carries it, to its sender, too; what never came to a
member was passed by all that it delivered. Members that fell out of the view count like any other; what they
delivered counts where the others have it. Everything is judged by each member's own steps.

There is no join of pairs. What a member consumes is the beginning of one order, so one number says how far
any of them had *reached* when h came: everything up to there has to be before h, and nothing less urgent
behind it may be. So h must not be at or before that place; and the last less urgent message before h, one
running value a level, must not be behind it.

Members may have passed messages that they did not deliver: those that are not for them, and those that they
kept, or found in the state, when they joined. A member *may* have reached all that comes before its next
delivery; a joiner anything before it has the state, and then as many messages as it had received, or as the
state holds. (One that ended before it had the state is known by having delivered nothing.) Less urgent
messages up to there may be before h. So may any if h may have come to a member whose record is cut short.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.core.priority import HIGHEST
from priocast.pipeline.checks.fifo import agreed_order
from priocast.pipeline.checks.violation import names, together, violations
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.ledger import is_named
from priocast.pipeline.membership import FELL_OUT
from priocast.pipeline.sources import MESSAGE_KEY, explode_batches, message_id
from priocast.trace.schema import DELIVERED, RECEIVED

_EVERYTHING = 2**62
_NOTHING = -1
_VIEW = ("run", "view_print")
_IN_VIEW = (*MESSAGE_KEY, "view_print")
_MEMBERS_SCHEMA = """run string, view long, coordinator string, process string, fell_out boolean,
    lost boolean, at_last long, selective boolean, first_position long, state_step long,
    state_position long"""


def find(evidence: Evidence) -> DataFrame:
    """Every message that is not where what had been consumed says it has to be."""
    rows = list(_members(evidence))
    if not rows:
        return together(evidence)
    members = sf.broadcast(
        evidence.spark.createDataFrame(rows, _MEMBERS_SCHEMA)
        .withColumn("view_print", sf.xxhash64("view", "coordinator"))
        .drop("view", "coordinator")
    )
    order = places(evidence, members)
    came = arrivals(progress(evidence.events, order, members))
    judged = between_levels(with_reach(order, came, members), sorted({*evidence.priorities, HIGHEST}))
    other = (
        sf.when(~_is_early(), sf.col("before"))
        .when(sf.col("after") <= sf.col("reached"), sf.col("after"))
        .alias("other")
    )
    found = judged.where(_is_early() | (sf.col("before") > sf.col("may_reach"))).select("*", other)
    return together(evidence, [described(with_other(found, order), evidence)])


def _members(evidence: Evidence) -> Iterator[tuple[object, ...]]:
    """The members of the views that are judged, with what keeps us from seeing what they consumed."""
    for run in evidence.runs:
        chronicle, lost = evidence.chronicles[run.name], evidence.lost_processes(run)
        for view in evidence.views_of[run.name].values():
            if not view.consumes_by_priority:
                continue
            for stay in view.stays:
                life = chronicle.lives.get(stay.process)
                state = life.restored[-1] if life and life.restored else None
                span = life.delivered.get(view.name) if life else None
                fell_out = stay.onward == FELL_OUT and view.survived
                kept_all = fell_out and view.name[0] > 1 and not (life and life.delivered)
                yield (
                    run.name,
                    *view.name,
                    stay.process,
                    fell_out,
                    stay.process in lost,
                    span.position_last if span else _NOTHING,
                    bool(chronicle.addressed),
                    view.first_position,
                    state.step if state else _EVERYTHING if kept_all else None,
                    state.position if state else None,
                )


def places(evidence: Evidence, members: DataFrame) -> DataFrame:
    """The messages of the views that are judged: the place and the urgency of each."""
    urgency = sf.when(sf.col("in_line"), sf.lit(HIGHEST)).otherwise(sf.col("level"))
    lines = evidence.ledger.where("deliveries > 0").select(*MESSAGE_KEY, "in_line")
    return (
        agreed_order(evidence)
        .join(members.select(*_VIEW).distinct(), list(_VIEW), "left_semi")
        .join(lines, list(MESSAGE_KEY))
        .select(*_IN_VIEW, "position", urgency.alias("urgency"), message_id().alias("message"))
    )


def progress(events: DataFrame, order: DataFrame, members: DataFrame) -> DataFrame:
    """What the members of the views that are judged received and delivered, batch by batch.

    `start` and `end` are the places of what was delivered. A member that fell out may have had other places
    for it: its deliveries are looked up, one by one.
    """
    is_delivery = sf.col("event") == DELIVERED
    comes = (sf.col("event") == RECEIVED) & ~is_named()
    here = events.where(is_delivery | comes).join(members, [*_VIEW, "process"])
    apart = sf.col("fell_out") & is_delivery
    own = here.where(~apart).withColumns(
        {
            "start": sf.when(is_delivery, sf.col("position")),
            "end": sf.when(is_delivery, sf.col("position") + sf.col("count") - 1),
        }
    )
    agreed = order.select(*_IN_VIEW, sf.col("position").alias("start"), sf.col("position").alias("end"))
    looked_up = explode_batches(here.where(apart)).join(agreed, list(_IN_VIEW))
    return own.unionByName(looked_up.select(own.columns))


def arrivals(progress: DataFrame) -> DataFrame:
    """For each message that came to anybody: how far the members had reached then, or may have."""
    of_member = Window.partitionBy(*_VIEW, "process")
    until = of_member.orderBy("step").rowsBetween(Window.unboundedPreceding, -1)
    # Backwards: a frame that ends with the partition is computed anew for each row.
    onward = of_member.orderBy(sf.desc("step")).rowsBetween(Window.unboundedPreceding, -1)
    had_no_state = sf.col("step") < sf.col("state_step")
    kept = sf.coalesce(sf.sum(sf.when(had_no_state & _comes(), sf.col("count"))).over(of_member), sf.lit(0))
    upcoming = sf.coalesce(sf.min("start").over(onward), sf.lit(_EVERYTHING))
    may_reach = sf.greatest(
        "reached",
        sf.when(had_no_state, sf.lit(_EVERYTHING)),
        sf.col("state_position") - 1,
        sf.when(sf.col("state_step").isNotNull(), sf.col("first_position") + kept - 1),
        sf.when(sf.col("selective"), upcoming - 1),
    )
    came = (
        progress.withColumn("reached", sf.coalesce(sf.max("end").over(until), sf.lit(_NOTHING)))
        .withColumn("may_reach", may_reach)
        .where(_comes())
    )
    return (
        explode_batches(came)
        .groupBy(*_IN_VIEW)
        .agg(
            sf.max(sf.struct("reached", "process")).alias("farthest"),
            sf.max("may_reach").alias("may_reach"),
            sf.collect_set("process").alias("came_to"),
        )
    )


def with_reach(order: DataFrame, came: DataFrame, members: DataFrame) -> DataFrame:
    """The messages with how far anybody had reached when each came, or may have; and who had.

    To whom it never came had reached, then, all that it delivered.
    """
    everybody = members.groupBy(*_VIEW).agg(
        sf.collect_list(sf.struct("at_last", "process", "lost")).alias("everybody")
    )
    came_to = sf.coalesce("came_to", sf.array().cast("array<string>"))
    absent = sf.filter("everybody", lambda member: ~sf.array_contains(came_to, member["process"]))
    known = sf.filter("absent", lambda member: ~member["lost"])
    at_last = sf.transform(
        known, lambda member: sf.struct(member["at_last"].alias("reached"), member["process"])
    )
    everything = sf.when(sf.exists("absent", lambda member: member["lost"]), sf.lit(_EVERYTHING))
    return (
        order.join(came, list(_IN_VIEW), "left")
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
    """The messages with the places of the nearest less urgent ones on both sides."""
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
    """What was found, with the less urgent message at the place `other`, if there is such a place."""
    lower = (
        (sf.col("found.run") == sf.col("order.run"))
        & (sf.col("found.view_print") == sf.col("order.view_print"))
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


def described(found: DataFrame, evidence: Evidence) -> DataFrame:
    """The violations: what is too early, because somebody had got past its place; and what is too late."""
    both = ("message", "urgency", "position", "other_message", "other_urgency", "other")
    ahead = sf.format_string(
        "%s (urgency %d) is at %d, before %s (urgency %d) at %d, but when it came to %s that had reached %d",
        *both,
        "process",
        "reached",
    )
    passed = sf.format_string(
        "%s is at %d, but when it came to %s that had reached %d", "message", "position", "process", "reached"
    )
    behind = sf.format_string(
        "%s (urgency %d) is at %d, behind %s (urgency %d) at %d, but when it came none of %s had got there",
        *both,
        names("members"),
    )
    early = sf.when(sf.col("other").isNull(), passed).otherwise(ahead)
    known = evidence.views.select(*_VIEW, "view", "coordinator", "members")
    return violations(
        found.join(known, list(_VIEW)),
        position=sf.col("position"),
        messages=sf.array_compact(sf.array("message", "other_message")),
        members=sf.when(_is_early(), sf.array("process")).otherwise(sf.array_sort("members")),
        detail=sf.when(_is_early(), early).otherwise(behind),
    )


def _is_early() -> Column:
    return sf.col("reached") >= sf.col("position")


def _comes() -> Column:
    return sf.col("event") == RECEIVED
