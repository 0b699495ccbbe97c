"""Mutants of runs with several views: one thing wrong, and the place at which a check must name it."""

from collections.abc import Callable

import msgspec

from pipeline import living_runs
from pipeline.living_groups import LivingGroup
from pipeline.mutants import (
    Mutant,
    Named,
    inserting_after,
    replacing,
    without,
)
from pipeline.sample_runs import SampleRun
from pipeline.story import id_of, process_of
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, STATE, VIEW, Row


def message_in_two_components() -> Mutant:
    """What a delivered on one side of a cut, d delivers on the other, too."""
    run = living_runs.divided()
    there, here = deliveries(run, "a", 2)[-1], deliveries(run, "d", 2)[-1]
    again = as_delivered_by(here, there, here.position + 1)
    who = ("a#1", "b#1", "c#1", "d#1")
    return Mutant(
        run.changed(inserting_after(here, again)), Named("Total order", there.position, (id_of(there),), who)
    )


def survivor_misses_message() -> Mutant:
    """Member b goes on without the last message of the view."""
    run = living_runs.crashed()
    row = deliveries(run, "b", 1)[-1]
    return Mutant(run.changed(without(row)), Named("Agreement", row.position, (id_of(row),), ("b#1",)))


def fallen_member_skipped_message() -> Mutant:
    """Member d, before it crashed, delivered what follows and not this."""
    run = living_runs.crashed()
    row = deliveries(run, "d", 1)[-3]
    return Mutant(run.changed(without(row)), Named("Agreement", row.position, (id_of(row),), ("d#1",)))


def one_side_disagrees() -> Mutant:
    """Member e goes on with d, and lacks what d has."""
    run = living_runs.divided()
    row = deliveries(run, "e", 1)[-1]
    return Mutant(run.changed(without(row)), Named("Agreement", row.position, (id_of(row),), ("e#1",)))


def joiner_misses_message() -> Mutant:
    run = living_runs.joined()
    row = deliveries(run, "d", 2)[3]
    return Mutant(run.changed(without(row)), Named("Agreement", row.position, (id_of(row),), ("d#1",)))


def joiner_delivers_what_its_state_holds() -> Mutant:
    run = living_runs.joined()
    state = next(row for row in run.rows if row.event == STATE)
    before = next(row for row in deliveries(run, "a", 2) if row.position == state.position - 1)
    again = before._replace(member=state.member, incarnation=state.incarnation)
    named = Named("Integrity", before.position, (id_of(before),), ("d#1",))
    return Mutant(run.changed(inserting_after(state, again)), named)


def message_for_another() -> Mutant:
    """What was for some, one delivers that was not among them."""
    run = living_runs.selective()
    row = next(row for row in deliveries(run, "b", 1) if row.to and "c" not in row.to.split(","))
    before = [other for other in deliveries(run, "c", 1) if other.position < row.position][-1]
    again = as_delivered_by(before, row, row.position)
    named = Named("Integrity", row.position, (id_of(row),), ("c#1",))
    return Mutant(run.changed(inserting_after(before, again)), named)


def resubmitted_and_delivered_twice() -> Mutant:
    """A message entered the queues of two views, and both ordered it."""
    run = living_runs.crashed()
    entered = [row for row in run.rows if row.event == RECEIVED and row.position < 0]
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
    return Mutant(changed, Named("Integrity", end, (id_of(row),), ("b#1",)))


def delivered_in_a_view_of_nobody() -> Mutant:
    run = living_runs.crashed()
    row = deliveries(run, "c", 2)[-1]
    changed = run.changed(replacing(row, row._replace(view=7)))
    return Mutant(changed, Named("Integrity", row.position, (), ("c#1",)))


def second_view_of_one_number() -> Mutant:
    """Member d, from which nothing was heard any more, goes on alone."""
    run = living_runs.crashed()
    last = deliveries(run, "d", 1)[-1]
    told = next(row for row in run.rows if row.event == VIEW and row.view == 2)
    alone = told._replace(
        member="d",
        coordinator="d#1",
        peer="d#1",
        sender="d",
        position=last.position + 1,
        time_ns=last.time_ns,
    )
    named = Named("View synchrony", last.position + 1, (), ("d#1",))
    return Mutant(run.changed(inserting_after(last, alone)), named)


def minority_goes_on() -> Mutant:
    run = LivingGroup("abcde").work().crash("c", "d", "e").work(1).notice().work(3).done()
    first = next(row for row in run.rows if row.event == VIEW and row.view == 2)
    return Mutant(run, Named("View synchrony", first.position, (), ("a#1", "b#1")))


def half_without_the_first_goes_on() -> Mutant:
    run = LivingGroup("abcd").work().crash("a", "b").work(1).notice().work(3).done()
    first = next(row for row in run.rows if row.event == VIEW and row.view == 2)
    return Mutant(run, Named("View synchrony", first.position, (), ("c#1", "d#1")))


def members_differ() -> Mutant:
    return told_otherwise("b", 2, lambda row: row._replace(peer="a#1,c#1,b#1"))


def first_position_differs() -> Mutant:
    return told_otherwise("c", 2, lambda row: row._replace(position=row.position - 1))


def orderer_differs() -> Mutant:
    return told_otherwise("c", 2, lambda row: row._replace(sender="c"))


def told_of_a_view_without_itself() -> Mutant:
    return told_otherwise("b", 2, lambda row: row._replace(peer="a#1,c#1"))


def view_goes_back() -> Mutant:
    """Member c is told of the first view again."""
    run = living_runs.crashed()
    first = next(row for row in run.rows if row.event == VIEW and row.member == "c")
    return Mutant(
        run.changed(lambda rows: [*rows, first]), Named("View synchrony", first.position, (), ("c#1",))
    )


def view_left_out() -> Mutant:
    """Member b goes from view 1 to view 3."""
    run = living_runs.crashed_and_joined()
    gone = next(row for row in run.rows if (row.event, row.member, row.view) == (VIEW, "b", 2))
    after = next(row for row in run.rows if (row.event, row.member, row.view) == (VIEW, "b", 3))
    return Mutant(run.changed(without(gone)), Named("View synchrony", after.position, (), ("b#1",)))


def sender_not_in_the_view() -> Mutant:
    """All deliver a message of d in the view after its crash."""
    run = living_runs.crashed()
    delivered = {id_of(row) for row in run.rows if row.event == DELIVERED}
    stray = next(
        row
        for row in run.rows
        if row.event == BROADCAST and row.member == "d" and id_of(row) not in delivered
    )
    changed = run
    for member in "abc":
        last = deliveries(run, member, 2)[-1]
        changed = changed.changed(
            inserting_after_last(member, as_delivered_by(last, stray, last.position + 1))
        )
    end = deliveries(run, "a", 2)[-1].position + 1
    return Mutant(changed, Named("View synchrony", end, (id_of(stray),), ("d#1",)))


def delivered_after_the_next_view() -> Mutant:
    run = living_runs.crashed()
    row = deliveries(run, "b", 1)[-1]
    told = next(row for row in run.rows if (row.event, row.member, row.view) == (VIEW, "b", 2))
    changed = run.changed(without(row)).changed(lambda rows: _after(rows, told, row))
    return Mutant(changed, Named("View synchrony", row.position, (id_of(row),), ("b#1",)))


def delivered_before_its_view() -> Mutant:
    run = living_runs.crashed()
    row = deliveries(run, "b", 2)[0]
    last = deliveries(run, "b", 1)[-1]
    changed = run.changed(without(row)).changed(lambda rows: _after(rows, last, row))
    return Mutant(changed, Named("View synchrony", row.position, (id_of(row),), ("b#1",)))


def safe_message_only_where_it_crashed() -> Mutant:
    """Only d delivered it, and crashed: no survivor has it, so they agree."""
    run = living_runs.safe()
    row = deliveries(run, "d", 1)[-1]
    gone = [other for other in run.rows if other.event == DELIVERED and id_of(other) == id_of(row)]
    changed = run.changed(without(*(other for other in gone if other.member != "d")))
    return Mutant(changed, Named("Uniformity", row.position, (id_of(row),), ("a#1", "b#1", "c#1")))


def safe_message_missing_at_one() -> Mutant:
    run = living_runs.safe()
    row = deliveries(run, "c", 1)[-1]
    return Mutant(run.changed(without(row)), Named("Uniformity", row.position, (id_of(row),), ("c#1",)))


def safe_message_delivered_before_all_held_it() -> Mutant:
    """Member d, which crashed, never received it; a delivered it and worked on."""
    run = living_runs.safe()
    row = deliveries(run, "a", 1)[0]
    return not_received(run, row, "d")


def safe_message_not_held_at_the_end() -> Mutant:
    run = living_runs.safe_at_times()
    row = [row for row in deliveries(run, "a", 2) if row.safe][-1]
    return not_received(run, row, "c")


def message_lost_between_views() -> Mutant:
    """A primary group delivers what follows, and not what was submitted again."""
    run = living_runs.crashed()
    lost = next(
        row
        for row in deliveries(run, "a", 2)
        if any(id_of(other) == id_of(row._replace(first=row.first + 1)) for other in deliveries(run, "a", 2))
    )
    after = next(
        row for row in deliveries(run, "a", 2) if id_of(row) == id_of(lost._replace(first=lost.first + 1))
    )
    gone = [row for row in run.rows if row.event == DELIVERED and id_of(row) == id_of(lost)]
    named = Named("FIFO among equals", after.position, (id_of(after),), (f"{after.sender}#1",))
    return Mutant(run.changed(without(*gone)), named)


def killed_in_a_simulation() -> Mutant:
    """In a simulated run no record is cut: what is not on record was not broadcast."""
    run = living_runs.cut_short()
    known = {id_of(row) for row in run.rows if row.event == BROADCAST}
    row = next(row for row in run.rows if row.event == DELIVERED and id_of(row) not in known)
    simulated = SampleRun(msgspec.structs.replace(run.manifest, clock="virtual"), run.rows)
    who = tuple(
        sorted(
            process_of(other) for other in run.rows if other.event == DELIVERED and id_of(other) == id_of(row)
        )
    )
    return Mutant(simulated, Named("Integrity", row.position, (id_of(row),), who))


# What a mutant breaks besides: one cause may break several promises, but not any other.
ALSO_BROKEN = {
    message_in_two_components: {"Agreement", "View synchrony"},
    resubmitted_and_delivered_twice: {"Total order"},
    delivered_in_a_view_of_nobody: {"Agreement", "Total order"},
    safe_message_missing_at_one: {"Agreement"},
    message_lost_between_views: {"Total order"},
}
MUTANTS: tuple[Callable[[], Mutant], ...] = (
    message_in_two_components,
    survivor_misses_message,
    fallen_member_skipped_message,
    one_side_disagrees,
    joiner_misses_message,
    joiner_delivers_what_its_state_holds,
    message_for_another,
    resubmitted_and_delivered_twice,
    delivered_in_a_view_of_nobody,
    second_view_of_one_number,
    minority_goes_on,
    half_without_the_first_goes_on,
    members_differ,
    first_position_differs,
    orderer_differs,
    told_of_a_view_without_itself,
    view_goes_back,
    view_left_out,
    sender_not_in_the_view,
    delivered_after_the_next_view,
    delivered_before_its_view,
    safe_message_only_where_it_crashed,
    safe_message_missing_at_one,
    safe_message_delivered_before_all_held_it,
    safe_message_not_held_at_the_end,
    message_lost_between_views,
    killed_in_a_simulation,
)


def deliveries(run: SampleRun, member: str, view: int) -> list[Row]:
    return [row for row in run.rows if (row.event, row.member, row.view) == (DELIVERED, member, view)]


def as_delivered_by(place: Row, message: Row, position: int) -> Row:
    """A delivery of one row's message by the process, and in the view, of the other."""
    return place._replace(
        sender=message.sender,
        sender_incarnation=message.sender_incarnation,
        level=message.level,
        first=message.first,
        safe=message.safe,
        to=message.to,
        position=position,
    )


def inserting_after_last(member: str, new: Row) -> Callable[[list[Row]], list[Row]]:
    """Insert a row after the last one of a member."""

    def change(rows: list[Row]) -> list[Row]:
        place = max(place for place, row in enumerate(rows) if row.member == member)
        return [*rows[: place + 1], new, *rows[place + 1 :]]

    return change


def _after(rows: list[Row], there: Row, new: Row) -> list[Row]:
    """Insert a row after another, whose step may have changed meanwhile."""
    place = next(place for place, row in enumerate(rows) if row._replace(step=there.step) == there)
    return [*rows[: place + 1], new, *rows[place + 1 :]]


def told_otherwise(member: str, view: int, change: Callable[[Row], Row]) -> Mutant:
    run = living_runs.crashed()
    row = next(row for row in run.rows if (row.event, row.member, row.view) == (VIEW, member, view))
    said = change(row)
    changed = run.changed(replacing(row, said))
    return Mutant(changed, Named("View synchrony", said.position, (), (f"{member}#1",)))


def not_received(run: SampleRun, row: Row, member: str) -> Mutant:
    gone = [
        other
        for other in run.rows
        if (other.event, other.member, other.view) == (RECEIVED, member, row.view)
        and other.position == row.position
    ]
    assert gone
    return Mutant(
        run.changed(without(*gone)), Named("Uniformity", row.position, (id_of(row),), (f"{member}#1",))
    )
