"""Mutants of runs with several views: one fault each, and where a check must report it."""

from collections.abc import Callable

import msgspec

from pipeline import model_runs
from pipeline.group_model import GroupModel
from pipeline.mutants import Expected, Mutant, inserting_after, replacing, without
from pipeline.sample_runs import Change, SampleRun
from pipeline.trace_facts import id_of, process_of
from priocast.trace.schema import (
    BROADCAST,
    DELIVERED,
    RECEIVED,
    STATE,
    VIEW,
    GroupEventRow,
    MessageRow,
    TraceRow,
)


def message_in_two_components() -> Mutant:
    """A message that a delivered on one side of a partition, d delivers on the other side."""
    run = model_runs.divided()
    there, here = deliveries(run, "a", 2)[-1], deliveries(run, "d", 2)[-1]
    again = as_delivered_by(here, there, here.position + 1)
    who = ("a#1", "b#1", "c#1", "d#1")
    return Mutant(
        run.changed(inserting_after(here, again)),
        Expected("Total order", there.position, (id_of(there),), who),
    )


def survivor_misses_message() -> Mutant:
    """Member b continues without the last message of the view."""
    run = model_runs.crashed()
    row = deliveries(run, "b", 1)[-1]
    return Mutant(run.changed(without(row)), Expected("Agreement", row.position, (id_of(row),), ("b#1",)))


def dropped_member_skipped_message() -> Mutant:
    """Member d, before it crashed, delivered later messages but not this one."""
    run = model_runs.crashed()
    row = deliveries(run, "d", 1)[-3]
    return Mutant(run.changed(without(row)), Expected("Agreement", row.position, (id_of(row),), ("d#1",)))


def one_side_disagrees() -> Mutant:
    """Member e continues with d, and lacks a message that d has."""
    run = model_runs.divided()
    row = deliveries(run, "e", 1)[-1]
    return Mutant(run.changed(without(row)), Expected("Agreement", row.position, (id_of(row),), ("e#1",)))


def joiner_misses_message() -> Mutant:
    run = model_runs.joined()
    row = deliveries(run, "d", 2)[3]
    return Mutant(run.changed(without(row)), Expected("Agreement", row.position, (id_of(row),), ("d#1",)))


def joiner_delivers_what_its_state_covers() -> Mutant:
    run = model_runs.joined()
    state = next(row for row in run.group_events if row.event == STATE)
    before = next(row for row in deliveries(run, "a", 2) if row.position == state.position - 1)
    again = before._replace(member=state.member, incarnation=state.incarnation)
    expected = Expected("Integrity", before.position, (id_of(before),), ("d#1",))
    return Mutant(run.changed(inserting_after(state, again)), expected)


def message_for_another() -> Mutant:
    """A member delivers a message that it is not a recipient of."""
    run = model_runs.selective()
    row = next(row for row in deliveries(run, "b", 1) if row.to and "c" not in row.to.split(","))
    before = [other for other in deliveries(run, "c", 1) if other.position < row.position][-1]
    again = as_delivered_by(before, row, row.position)
    expected = Expected("Integrity", row.position, (id_of(row),), ("c#1",))
    return Mutant(run.changed(inserting_after(before, again)), expected)


def resubmitted_and_delivered_twice() -> Mutant:
    """A message entered the queues of two views, and both ordered it."""
    run = model_runs.crashed()
    entered = [row for row in run.messages if row.event == RECEIVED and row.position < 0]
    twice = next(
        row
        for row in entered
        if row.view == 2 and any(other.view == 1 and id_of(other) == id_of(row) for other in entered)
    )
    row = next(row for row in deliveries(run, "a", 2) if id_of(row) == id_of(twice))
    changed = run
    for member in "abc":
        last = deliveries(run, member, 2)[-1]
        changed = changed.changed(inserting_after_last(member, as_delivered_by(last, row, last.position + 1)))
    end = deliveries(run, "a", 2)[-1].position + 1
    return Mutant(changed, Expected("Integrity", end, (id_of(row),), ("b#1",)))


def delivered_in_an_unknown_view() -> Mutant:
    run = model_runs.crashed()
    row = deliveries(run, "c", 2)[-1]
    changed = run.changed(replacing(row, row._replace(view=7)))
    return Mutant(changed, Expected("Integrity", row.position, (), ("c#1",)))


def two_views_with_one_number() -> Mutant:
    """Member d, which counts as crashed, continues alone."""
    run = model_runs.crashed()
    last = deliveries(run, "d", 1)[-1]
    received = next(row for row in run.group_events if row.event == VIEW and row.view == 2)
    alone = received._replace(
        member="d",
        coordinator="d#1",
        members=("d#1",),
        orderer="d#1",
        position=last.position + 1,
        time_ns=last.time_ns,
    )
    expected = Expected("View synchrony", last.position + 1, (), ("d#1",))
    return Mutant(run.changed(inserting_after(last, alone)), expected)


def minority_continues() -> Mutant:
    run = GroupModel("abcde").work().crash("c", "d", "e").work(1).notice().work(3).done()
    first = next(row for row in run.group_events if row.event == VIEW and row.view == 2)
    return Mutant(run, Expected("View synchrony", first.position, (), ("a#1", "b#1")))


def half_without_the_first_continues() -> Mutant:
    run = GroupModel("abcd").work().crash("a", "b").work(1).notice().work(3).done()
    first = next(row for row in run.group_events if row.event == VIEW and row.view == 2)
    return Mutant(run, Expected("View synchrony", first.position, (), ("c#1", "d#1")))


def members_differ() -> Mutant:
    return received_otherwise("b", 2, lambda row: row._replace(members=("a#1", "c#1", "b#1")))


def first_position_differs() -> Mutant:
    return received_otherwise("c", 2, lambda row: row._replace(position=row.position - 1))


def reason_differs() -> Mutant:
    return received_otherwise("b", 2, lambda row: row._replace(failed=(), left=row.failed))


def orderer_differs() -> Mutant:
    return received_otherwise("c", 2, lambda row: row._replace(orderer="c#1"))


def received_a_view_without_itself() -> Mutant:
    return received_otherwise("b", 2, lambda row: row._replace(members=("a#1", "c#1")))


def view_goes_back() -> Mutant:
    """Member c receives the first view again."""
    run = model_runs.crashed()
    first = next(row for row in run.group_events if row.event == VIEW and row.member == "c")
    return Mutant(
        run.changed(lambda rows: [*rows, first]), Expected("View synchrony", first.position, (), ("c#1",))
    )


def view_skipped() -> Mutant:
    """Member b continues from view 1 to view 3."""
    run = model_runs.crashed_and_joined()
    gone = next(row for row in run.group_events if (row.event, row.member, row.view) == (VIEW, "b", 2))
    after = next(row for row in run.group_events if (row.event, row.member, row.view) == (VIEW, "b", 3))
    return Mutant(run.changed(without(gone)), Expected("View synchrony", after.position, (), ("b#1",)))


def sender_not_in_the_view() -> Mutant:
    """All deliver a message of d in the view after its crash."""
    run = model_runs.crashed()
    delivered = {id_of(row) for row in run.messages if row.event == DELIVERED}
    stray = next(
        row
        for row in run.messages
        if row.event == BROADCAST and row.member == "d" and id_of(row) not in delivered
    )
    changed = run
    for member in "abc":
        last = deliveries(run, member, 2)[-1]
        changed = changed.changed(
            inserting_after_last(member, as_delivered_by(last, stray, last.position + 1))
        )
    end = deliveries(run, "a", 2)[-1].position + 1
    return Mutant(changed, Expected("View synchrony", end, (id_of(stray),), ("d#1",)))


def delivered_after_the_next_view() -> Mutant:
    run = model_runs.crashed()
    row = deliveries(run, "b", 1)[-1]
    received = next(row for row in run.group_events if (row.event, row.member, row.view) == (VIEW, "b", 2))
    changed = run.changed(without(row)).changed(lambda rows: _after(rows, received, row))
    return Mutant(changed, Expected("View synchrony", row.position, (id_of(row),), ("b#1",)))


def delivered_before_its_view() -> Mutant:
    run = model_runs.crashed()
    row = deliveries(run, "b", 2)[0]
    last = deliveries(run, "b", 1)[-1]
    changed = run.changed(without(row)).changed(lambda rows: _after(rows, last, row))
    return Mutant(changed, Expected("View synchrony", row.position, (id_of(row),), ("b#1",)))


def safe_message_only_where_it_crashed() -> Mutant:
    """Only d delivered it, and crashed: no survivor has it, so there is no violation of Agreement."""
    run = model_runs.safe()
    row = deliveries(run, "d", 1)[-1]
    gone = [other for other in run.messages if other.event == DELIVERED and id_of(other) == id_of(row)]
    changed = run.changed(without(*(other for other in gone if other.member != "d")))
    return Mutant(changed, Expected("Uniformity", row.position, (id_of(row),), ("a#1", "b#1", "c#1")))


def safe_message_missing_at_one() -> Mutant:
    run = model_runs.safe()
    row = deliveries(run, "c", 1)[-1]
    return Mutant(run.changed(without(row)), Expected("Uniformity", row.position, (id_of(row),), ("c#1",)))


def safe_message_delivered_before_all_received_it() -> Mutant:
    """Member d, which crashed, never received it; a delivered it and continued to work in the view."""
    run = model_runs.safe()
    row = deliveries(run, "a", 1)[0]
    return not_received(run, row, "d")


def safe_message_not_received_at_the_end() -> Mutant:
    run = model_runs.safe_at_times()
    row = [row for row in deliveries(run, "a", 2) if row.safe][-1]
    return not_received(run, row, "c")


def safe_message_only_at_another() -> Mutant:
    """In a divided group, a member delivers a message that it is not a recipient of; the recipients do not.

    What it delivers binds those that continue with it, whether it should have delivered it or not.
    """
    run = model_runs.safe_and_selective()
    row = next(row for row in deliveries(run, "b", 2) if row.to and "c" not in row.to.split(","))
    before = [other for other in deliveries(run, "c", 2) if other.position < row.position][-1]
    gone = [other for other in run.messages if other.event == DELIVERED and id_of(other) == id_of(row)]
    instead = as_delivered_by(before, row, row.position)
    changed = run.changed(without(*gone)).changed(inserting_after(before, instead))
    who = tuple(sorted(process_of(other) for other in gone))
    return Mutant(changed, Expected("Uniformity", row.position, (id_of(row),), who))


def message_lost_between_views() -> Mutant:
    """A primary group delivers a later message, but not the one that was submitted again."""
    run = model_runs.crashed()
    lost = next(
        row
        for row in deliveries(run, "a", 2)
        if any(id_of(other) == id_of(row._replace(first=row.first + 1)) for other in deliveries(run, "a", 2))
    )
    after = next(
        row for row in deliveries(run, "a", 2) if id_of(row) == id_of(lost._replace(first=lost.first + 1))
    )
    gone = [row for row in run.messages if row.event == DELIVERED and id_of(row) == id_of(lost)]
    expected = Expected("FIFO among equals", after.position, (id_of(after),), (f"{after.sender}#1",))
    return Mutant(run.changed(without(*gone)), expected)


def last_message_of_a_view_lost() -> Mutant:
    """Nobody delivers the last message before the view that a member's leaving ends."""
    return _end_lost(model_runs.left())


def last_message_of_a_view_lost_in_a_real_run() -> Mutant:
    """The same with local clocks: the next view says where the one before ended."""
    run = model_runs.left()
    return _end_lost(SampleRun(msgspec.structs.replace(run.manifest, clock="shared"), run.rows))


def _end_lost(run: SampleRun) -> Mutant:
    last = deliveries(run, "c", 1)[-1]
    gone = [row for row in run.messages if row.event == DELIVERED and id_of(row) == id_of(last)]
    return Mutant(run.changed(without(*gone)), Expected("Total order", last.position, (), ()))


def record_truncated_in_a_simulation() -> Mutant:
    """In a simulated run no record is truncated: what is not recorded was not broadcast."""
    run = model_runs.truncated()
    known = {id_of(row) for row in run.messages if row.event == BROADCAST}
    row = next(row for row in run.messages if row.event == DELIVERED and id_of(row) not in known)
    simulated = SampleRun(msgspec.structs.replace(run.manifest, clock="virtual"), run.rows)
    who = tuple(
        sorted(
            process_of(other)
            for other in run.messages
            if other.event == DELIVERED and id_of(other) == id_of(row)
        )
    )
    return Mutant(simulated, Expected("Integrity", row.position, (id_of(row),), who))


MUTANTS: tuple[Callable[[], Mutant], ...] = (
    message_in_two_components,
    survivor_misses_message,
    dropped_member_skipped_message,
    one_side_disagrees,
    joiner_misses_message,
    joiner_delivers_what_its_state_covers,
    message_for_another,
    resubmitted_and_delivered_twice,
    delivered_in_an_unknown_view,
    two_views_with_one_number,
    minority_continues,
    half_without_the_first_continues,
    members_differ,
    first_position_differs,
    orderer_differs,
    reason_differs,
    received_a_view_without_itself,
    view_goes_back,
    view_skipped,
    sender_not_in_the_view,
    delivered_after_the_next_view,
    delivered_before_its_view,
    safe_message_only_where_it_crashed,
    safe_message_missing_at_one,
    safe_message_delivered_before_all_received_it,
    safe_message_not_received_at_the_end,
    safe_message_only_at_another,
    message_lost_between_views,
    last_message_of_a_view_lost,
    last_message_of_a_view_lost_in_a_real_run,
    record_truncated_in_a_simulation,
)


def deliveries(run: SampleRun, member: str, view: int) -> list[MessageRow]:
    return [row for row in run.messages if (row.event, row.member, row.view) == (DELIVERED, member, view)]


def as_delivered_by(delivery: MessageRow, message: MessageRow, position: int) -> MessageRow:
    """A delivery of a message by the process, and in the view, of another delivery."""
    return delivery._replace(
        sender=message.sender,
        sender_incarnation=message.sender_incarnation,
        level=message.level,
        first=message.first,
        safe=message.safe,
        to=message.to,
        position=position,
    )


def inserting_after_last(member: str, new: TraceRow) -> Change:
    """Insert a row after the last one of a member."""

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        last = max(index for index, row in enumerate(rows) if row.member == member)
        return [*rows[: last + 1], new, *rows[last + 1 :]]

    return change


def _after(rows: list[TraceRow], there: TraceRow, new: TraceRow) -> list[TraceRow]:
    """Insert a row after another, whose step may have changed."""
    found = next(index for index, row in enumerate(rows) if row._replace(step=there.step) == there)
    return [*rows[: found + 1], new, *rows[found + 1 :]]


def received_otherwise(member: str, view: int, change: Callable[[GroupEventRow], GroupEventRow]) -> Mutant:
    run = model_runs.crashed()
    row = next(row for row in run.group_events if (row.event, row.member, row.view) == (VIEW, member, view))
    new = change(row)
    changed = run.changed(replacing(row, new))
    return Mutant(changed, Expected("View synchrony", new.position, (), (f"{member}#1",)))


def not_received(run: SampleRun, row: MessageRow, member: str) -> Mutant:
    gone = [
        other
        for other in run.messages
        if (other.event, other.member, other.view) == (RECEIVED, member, row.view)
        and other.position == row.position
    ]
    assert gone
    return Mutant(
        run.changed(without(*gone)), Expected("Uniformity", row.position, (id_of(row),), (f"{member}#1",))
    )
