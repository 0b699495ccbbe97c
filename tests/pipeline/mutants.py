"""Mutants: a correct run with one thing wrong, and the place at which a check must name it.

They are made of runs whose batches hold one message, so that a row is a message and a place is a position.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from pipeline.sample_runs import SampleRun
from pipeline.story import id_of
from priocast.core.starvation import parse_starvation
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, VIEW, Row

PLACE = 23


@dataclass(frozen=True)
class Named:
    """What a verdict must name: the property, and of one of its violations the place."""

    property: str
    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    run: SampleRun
    named: Named


def delivery_swapped_in_time(run: SampleRun) -> Mutant:
    """Member b delivers position 24 before 23, and says so."""
    one, other = _delivery(run, "b", PLACE), _delivery(run, "b", PLACE + 1)

    def change(rows: list[Row]) -> list[Row]:
        first, second = rows.index(one), rows.index(other)
        rows[first], rows[second] = other, one
        return rows

    return Mutant(run.changed(change), Named("Total order", PLACE, (id_of(one),), ("b#1",)))


def delivery_swapped_in_content(run: SampleRun) -> Mutant:
    """Member b delivers two messages in the other order, and says the positions that it should have had."""
    one, other = _delivery(run, "b", PLACE), _delivery(run, "b", PLACE + 1)

    def change(rows: list[Row]) -> list[Row]:
        first, second = rows.index(one), rows.index(other)
        rows[first], rows[second] = _with_message(one, other), _with_message(other, one)
        return rows

    both = tuple(sorted((id_of(one), id_of(other))))
    return Mutant(run.changed(change), Named("Total order", PLACE, both, ("a#1", "b#1", "c#1", "d#1")))


def position_wrong(run: SampleRun) -> Mutant:
    """Member c says 24 for what it delivered as 23."""
    row, following = _delivery(run, "c", PLACE), _delivery(run, "c", PLACE + 1)
    both = tuple(sorted((id_of(row), id_of(following))))
    changed = run.changed(replacing(row, row._replace(position=PLACE + 1)))
    return Mutant(changed, Named("Total order", PLACE + 1, both, ("a#1", "b#1", "c#1", "d#1")))


def position_left_out(run: SampleRun) -> Mutant:
    """Nobody delivers position 23."""
    changed = run.changed(
        lambda rows: [row for row in rows if (row.event, row.position) != (DELIVERED, PLACE)]
    )
    return Mutant(changed, Named("Total order", PLACE, (), ()))


def delivery_dropped(run: SampleRun) -> Mutant:
    row = _delivery(run, "d", PLACE)
    return Mutant(run.changed(without(row)), Named("Agreement", PLACE, (id_of(row),), ("d#1",)))


def tail_lost(run: SampleRun) -> Mutant:
    """Members b and c stop before the end."""
    last = max(row.position for row in run.rows)
    rows = [_delivery(run, "b", last), _delivery(run, "c", last)]
    return Mutant(run.changed(without(*rows)), Named("Agreement", last, (id_of(rows[0]),), ("b#1", "c#1")))


def delivery_repeated(run: SampleRun) -> Mutant:
    row = _delivery(run, "c", PLACE)
    changed = run.changed(inserting_after(row, row))
    return Mutant(changed, Named("Integrity", PLACE, (id_of(row),), ("c#1",)))


def never_broadcast(run: SampleRun) -> Mutant:
    row = _delivery(run, "a", PLACE)
    there = next(other for other in run.rows if other.event == BROADCAST and id_of(other) == id_of(row))
    named = Named("Integrity", PLACE, (id_of(row),), ("a#1", "b#1", "c#1", "d#1"))
    return Mutant(run.changed(without(there)), named)


def outsider(run: SampleRun) -> Mutant:
    """A process that is not in the view delivers, too."""
    row = _delivery(run, "d", PLACE)
    changed = run.changed(inserting_after(row, row._replace(member="x")))
    return Mutant(changed, Named("Integrity", PLACE, (), ("x#1",)))


def fifo_stepped_back(run: SampleRun) -> Mutant:
    """All agree on an order in which a message comes before its predecessor of the same sender and level."""
    first = _delivery(run, "a", PLACE)
    second = next(
        row
        for row in run.rows
        if row.event == DELIVERED and id_of(row) == id_of(first._replace(first=first.first + 1))
    )
    changed = run.changed(exchanging_in_order(first, second))
    return Mutant(changed, Named("FIFO among equals", PLACE, (id_of(second),), (f"{first.sender}#1",)))


def priority_inverted(run: SampleRun) -> Mutant:
    """The orderer lets the next message go before the one that ranks ahead of it."""
    policy = parse_starvation(run.manifest.starvation)
    entered = {id_of(row): row for row in run.rows if row.member == "a" and _enters(row)}
    left = {row.position: row for row in run.rows if row.event == SENT and row.position >= 0}
    for position, ahead in left.items():
        behind = left.get(position + 1)
        if behind is None:
            continue
        first, second = entered[id_of(ahead)], entered[id_of(behind)]
        ranks = [policy.sort_key(row.level, row.time_ns) for row in (first, second)]
        if max(first.step, second.step) < ahead.step and ranks[0] < ranks[1]:
            changed = run.changed(exchanging_in_order(ahead, behind))
            named = Named("Priority", position, (id_of(ahead), id_of(behind)), ("a#1",))
            return Mutant(changed, named)
    raise AssertionError("the run has a backlog")


def sending_inverted(run: SampleRun) -> Mutant:
    """Member b lets a message of its own go before one that ranks ahead of it, and was there."""
    policy = parse_starvation(run.manifest.starvation)
    offered = {id_of(row): row for row in run.rows if (row.event, row.member) == (BROADCAST, "b")}
    sent = [row for row in run.rows if (row.event, row.member, row.sender) == (SENT, "b", "b")]
    rank = {message: policy.sort_key(row.level, row.time_ns) for message, row in offered.items()}
    for ahead, behind in pairwise(sent):
        one, other = id_of(ahead), id_of(behind)
        if rank[one] < rank[other] and max(offered[one].step, offered[other].step) < ahead.step:
            changed = run.changed(_exchanging(ahead, behind))
            return Mutant(changed, Named("Priority", None, (one, other), ("b#1",)))
    raise AssertionError("the member has a backlog")


def never_sent(run: SampleRun) -> Mutant:
    """The most urgent message at member b is never sent; the first that wrongs it most is named."""
    offered = [row for row in run.rows if (row.event, row.member) == (BROADCAST, "b")]
    urgent = max(offered, key=lambda row: row.level)
    sent = [row for row in run.rows if (row.event, row.member, row.sender) == (SENT, "b", "b")]
    after = [row for row in sent if row.step > urgent.step and row.level < urgent.level]
    worst = max(after, key=lambda row: (-row.level, row.step))
    gone = next(row for row in sent if id_of(row) == id_of(urgent))
    named = Named("Priority", None, (id_of(urgent), id_of(worst)), ("b#1",))
    return Mutant(run.changed(without(gone)), named)


def never_ordered(run: SampleRun) -> Mutant:
    """The most urgent message that waits is never let out; the first that wrongs it most is named."""
    urgent = max((row for row in run.rows if row.member == "a" and _enters(row)), key=lambda row: row.level)
    leave = next(
        row for row in run.rows if row.event == SENT and row.position >= 0 and id_of(row) == id_of(urgent)
    )
    after = [row for row in run.rows if row.event == SENT and row.position >= 0 and row.step > urgent.step]
    worst = max((row for row in after if row.level < urgent.level), key=lambda row: (-row.level, row.step))
    named = Named("Priority", worst.position, (id_of(urgent), id_of(worst)), ("a#1",))
    return Mutant(run.changed(without(leave)), named)


def ordered_out_of_nowhere(run: SampleRun) -> Mutant:
    """The orderer gives a position to a message that it never received."""
    row = _delivery(run, "a", PLACE)
    there = next(other for other in run.rows if _enters(other) and id_of(other) == id_of(row))
    return Mutant(run.changed(without(there)), Named("Priority", PLACE, (id_of(row),), ("a#1",)))


ANY_POLICY = (
    delivery_swapped_in_time,
    delivery_swapped_in_content,
    position_wrong,
    position_left_out,
    delivery_dropped,
    tail_lost,
    delivery_repeated,
    never_broadcast,
    outsider,
    fifo_stepped_back,
    ordered_out_of_nowhere,
)


def _delivery(run: SampleRun, member: str, position: int) -> Row:
    return next(
        row for row in run.rows if (row.event, row.member, row.position) == (DELIVERED, member, position)
    )


def _enters(row: Row) -> bool:
    return row.event == RECEIVED and row.position < 0


def _with_message(row: Row, of: Row) -> Row:
    return row._replace(
        sender=of.sender,
        sender_incarnation=of.sender_incarnation,
        level=of.level,
        first=of.first,
        priorities=of.priorities,
    )


def _exchanging(one: Row, other: Row) -> Callable[[list[Row]], list[Row]]:
    """Let two rows name each other's messages, each at its own time and place."""
    new = {one: _with_message(one, other), other: _with_message(other, one)}
    return lambda rows: [new.get(row, row) for row in rows]


def without(*gone: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if row not in gone]


def replacing(old: Row, new: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [new if row == old else row for row in rows]


def inserting_after(there: Row, new: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [copy for row in rows for copy in ((row, new) if row == there else (row,))]


def exchanging_in_order(one: Row, other: Row) -> Callable[[list[Row]], list[Row]]:
    """Exchange the places of two messages, in what the orderer sends and at every member."""

    def change(row: Row) -> Row:
        if row.position >= 0 and row.event != VIEW:
            if id_of(row) == id_of(one):
                return _with_message(row, other)
            if id_of(row) == id_of(other):
                return _with_message(row, one)
        return row

    return lambda rows: [change(row) for row in rows]
