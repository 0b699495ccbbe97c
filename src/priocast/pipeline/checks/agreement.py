"""Agreement: members that continue together from a view delivered the same messages in it.

Members continue together if they receive the same next view, or remain in a final one (see
`pipeline/membership.py`). What one of them delivered in the view, each of them delivered, unless it was not a
recipient, or received a state that covers the message. Whether the one that delivered it is a recipient does
not matter: that is a matter of Integrity.

A member that dropped out of the view (it crashed, left or was evicted) owes nothing after its own last
delivery there. Before that, it owes what all those delivered that continued or remained: it may have stopped,
but it skipped nothing. Where queues are re-ordered, it owes nothing from the first message on that it
delivered alone (`pipeline/divergence.py`).
"""

from collections.abc import Callable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.divergence import until_divergence
from priocast.pipeline.membership import DROPPED_OUT
from priocast.pipeline.message_rows import deliverer_sets
from priocast.pipeline.sources import MESSAGE_KEY, message_id
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.violations import names, union, violations


def find(trace: TraceTables) -> DataFrame:
    """Messages that only some of the members that continued together delivered; all of them are irregular."""
    return union(trace, missing_deliveries(trace, lambda sets: incomplete(sets, trace)))


def missing_deliveries(trace: TraceTables, judge: Callable[[DataFrame], DataFrame]) -> list[DataFrame]:
    """What `judge` finds missing in sets of deliverers: message by message, and group by group."""
    tables = []
    if trace.irregular is not None:
        tables.append(report_missing(judge(binding_sets(trace))))
    if trace.groups is not None:
        tables.append(report_missing(of_each_message(judge(trace.groups.sets), trace)))
    return tables


def of_each_message(found: DataFrame, trace: TraceTables) -> DataFrame:
    """The messages of the groups in which something was found, with what it is."""
    of_group = found.select("group_hash", "view", "coordinator", "missing", "summary")
    messages = trace.messages.where("group_hash is not null").select(*MESSAGE_KEY, "position", "group_hash")
    return messages.join(sf.broadcast(of_group), "group_hash")


def binding_sets(trace: TraceTables) -> DataFrame:
    """Who delivered each irregular message in each view, without what members did after they diverged."""
    assert trace.irregular is not None and trace.irregular_sets is not None
    if trace.diverged is None:
        return trace.irregular_sets
    return deliverer_sets(
        until_divergence(trace.irregular, trace.diverged), trace.participations, trace.words
    )


def incomplete(sets: DataFrame, trace: TraceTables) -> DataFrame:
    """The irregular messages that were not delivered by everybody who owes them."""
    skipped = sf.when(
        (sf.size("lacking") == 0) & (sf.col("final") | (sf.size("continued_to") > 0)), sf.col("skipped_by")
    ).otherwise(sf.array().cast("array<string>"))
    return with_missing(deliverers(sets, trace), sf.concat(lacking_among_peers(), skipped))


def deliverers(sets: DataFrame, trace: TraceTables) -> DataFrame:
    """For each of some irregular messages in each view: who `delivered` it, and which recipients did not.

    `continued_to` has the next views of those that delivered it, whether they had to or not, `lacking` those
    that continued or remained without it, `skipped_by` those that dropped out after they had delivered a
    later position. A member that delivered a message is a bit until then: in a damaged trace, these may be
    all messages.
    """
    members = trace.participations.groupBy("run", "view_hash", "final").agg(
        sf.collect_list(
            sf.struct("process", "name", "next_view", "owes_from", "owes_until", "word", "bit")
        ).alias("members")
    )

    def is_due(member: Column) -> Column:
        is_recipient = (sf.col("to") == "") | sf.array_contains(sf.split("to", ","), member["name"])
        return is_recipient & (member["owes_from"] <= sf.col("position"))

    def has(member: Column) -> Column:
        of_word = (
            (member["word"] == word) & (sf.col(f"delivered_{word}").bitwiseAND(member["bit"]) != 0)
            for word in trace.words
        )
        return reduce(or_, of_word)

    def continued(member: Column) -> Column:
        return member["next_view"] != DROPPED_OUT

    def skipped(member: Column) -> Column:
        return ~continued(member) & ~has(member) & (sf.col("position") < member["owes_until"])

    with_it = sf.filter("members", lambda member: continued(member) & has(member))
    return (
        sets.join(sf.broadcast(trace.senders), "sender_hash")
        .join(trace.views.select("run", "view_hash", "view", "coordinator"), ["run", "view_hash"])
        .join(sf.broadcast(members), ["run", "view_hash"])
        .withColumn("due", sf.filter("members", is_due))
        .withColumns(
            {
                "delivered": _processes(sf.filter("members", has)),
                "continued_to": sf.transform(with_it, lambda member: member["next_view"]),
                "lacking": sf.filter("due", lambda member: continued(member) & ~has(member)),
                "skipped_by": _processes(sf.filter("due", skipped)),
            }
        )
        .drop("members", "due")
    )


def _processes(members: Column) -> Column:
    return sf.transform(members, lambda member: member["process"])


def lacking_among_peers() -> Column:
    """Of `lacking`, the members that continued together with one that delivered the message."""
    peers = sf.filter("lacking", lambda member: sf.array_contains("continued_to", member["next_view"]))
    return _processes(peers)


def with_missing(found: DataFrame, missing: Column) -> DataFrame:
    """Where any members are `missing` although others `delivered`, with a `summary`."""
    summary = sf.concat(sf.lit("delivered by "), names("delivered"), sf.lit(" but not by "), names("missing"))
    with_members = found.withColumn("missing", sf.array_sort(missing)).where(sf.size("missing") > 0)
    return with_members.withColumn("summary", summary)


def report_missing(found: DataFrame) -> DataFrame:
    """Violations by the members in `missing`."""
    return violations(
        found,
        position=sf.col("position"),
        messages=sf.array(message_id()),
        members=sf.col("missing"),
        summary=sf.col("summary"),
    )
