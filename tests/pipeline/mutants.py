"""Mutants: a correct run with one fault, and where a check must report it.

They are made of runs whose batches contain one message each, so that a row is a message.
"""

from dataclasses import dataclass
from itertools import pairwise

from pipeline.sample_runs import Change, SampleRun
from pipeline.trace_facts import id_of
from priocast.core.starvation import parse_starvation
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, MessageRow, TraceRow

POSITION = 23


@dataclass(frozen=True)
class Expected:
    """What a verdict must report: the guarantee, and where one of its violations is."""

    guarantee: str
    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    run: SampleRun
    expected: Expected


def delivery_swapped_in_time(run: SampleRun) -> Mutant:
    """Member b delivers position 24 before 23, and records both positions."""
    one, other = _delivery(run, "b", POSITION), _delivery(run, "b", POSITION + 1)

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        first, second = rows.index(one), rows.index(other)
        rows[first], rows[second] = other, one
        return rows

    return Mutant(run.changed(change), Expected("Total order", POSITION, (id_of(one),), ("b#1",)))


def delivery_swapped_in_content(run: SampleRun) -> Mutant:
    """Member b delivers two messages in the opposite order, and records the expected positions."""
    one, other = _delivery(run, "b", POSITION), _delivery(run, "b", POSITION + 1)

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        first, second = rows.index(one), rows.index(other)
        rows[first], rows[second] = _with_message(one, other), _with_message(other, one)
        return rows

    both = tuple(sorted((id_of(one), id_of(other))))
    return Mutant(run.changed(change), Expected("Total order", POSITION, both, ("a#1", "b#1", "c#1", "d#1")))


def position_wrong(run: SampleRun) -> Mutant:
    """Member c records position 24 for what it delivered at 23."""
    row, following = _delivery(run, "c", POSITION), _delivery(run, "c", POSITION + 1)
    both = tuple(sorted((id_of(row), id_of(following))))
    changed = run.changed(replacing(row, row._replace(position=POSITION + 1)))
    return Mutant(changed, Expected("Total order", POSITION + 1, both, ("a#1", "b#1", "c#1", "d#1")))


def position_left_out(run: SampleRun) -> Mutant:
    """Nobody delivers position 23."""
    left_out = [row for row in run.messages if (row.event, row.position) == (DELIVERED, POSITION)]
    changed = run.changed(lambda rows: [row for row in rows if row not in left_out])
    return Mutant(changed, Expected("Total order", POSITION, (), ()))


def delivery_dropped(run: SampleRun) -> Mutant:
    row = _delivery(run, "d", POSITION)
    return Mutant(run.changed(without(row)), Expected("Agreement", POSITION, (id_of(row),), ("d#1",)))


def tail_lost(run: SampleRun) -> Mutant:
    """Members b and c do not deliver the last message."""
    last = max(row.position for row in run.messages)
    rows = [_delivery(run, "b", last), _delivery(run, "c", last)]
    return Mutant(run.changed(without(*rows)), Expected("Agreement", last, (id_of(rows[0]),), ("b#1", "c#1")))


def delivery_repeated(run: SampleRun) -> Mutant:
    row = _delivery(run, "c", POSITION)
    changed = run.changed(inserting_after(row, row))
    return Mutant(changed, Expected("Integrity", POSITION, (id_of(row),), ("c#1",)))


def never_broadcast(run: SampleRun) -> Mutant:
    row = _delivery(run, "a", POSITION)
    entry = next(other for other in run.messages if other.event == BROADCAST and id_of(other) == id_of(row))
    expected = Expected("Integrity", POSITION, (id_of(row),), ("a#1", "b#1", "c#1", "d#1"))
    return Mutant(run.changed(without(entry)), expected)


def broadcast_recorded_twice(run: SampleRun) -> Mutant:
    entry = next(row for row in run.messages if row.event == BROADCAST)
    sender = f"{entry.sender}#{entry.sender_incarnation}"
    changed = run.changed(inserting_after(entry, entry))
    return Mutant(changed, Expected("Integrity", None, (id_of(entry),), (sender,)))


def broadcast_after_its_delivery(run: SampleRun) -> Mutant:
    """A sender records the broadcast of a message after it has delivered it."""
    entry, row = _broadcast_and_own_delivery(run)

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        return inserting_after(row, entry)(without(entry)(rows))

    return Mutant(run.changed(change), Expected("Causal order", row.position, (id_of(row),), ("b#1",)))


def sender_lacks_what_it_caused(run: SampleRun) -> Mutant:
    """A sender does not deliver its message, which precedes what it had delivered at its broadcast."""
    entry, row = _broadcast_and_own_delivery(run)
    later = _delivery(run, "b", row.position + 1)

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        return inserting_after(later, entry)(without(entry, row)(rows))

    return Mutant(run.changed(change), Expected("Causal order", row.position, (id_of(row),), ("b#1",)))


def _broadcast_and_own_delivery(run: SampleRun) -> tuple[MessageRow, MessageRow]:
    own = [row for row in run.messages if row.member == row.sender == "b"]
    delivery = next(row for row in own if row.event == DELIVERED and row.position >= POSITION)
    return next(row for row in own if row.event == BROADCAST and id_of(row) == id_of(delivery)), delivery


def first_delivery_lost_everywhere(run: SampleRun) -> Mutant:
    """Nobody delivers the first message of the only view."""
    gone = [row for row in run.messages if (row.event, row.position) == (DELIVERED, 0)]
    return Mutant(run.changed(without(*gone)), Expected("Total order", 0, (), ()))


def last_delivery_lost_everywhere(run: SampleRun) -> Mutant:
    """Nobody delivers the last message of the final view, whose position is in packets."""
    last = max(row.position for row in run.messages)
    gone = [row for row in run.messages if (row.event, row.position) == (DELIVERED, last)]
    return Mutant(run.changed(without(*gone)), Expected("Total order", last, (), ()))


def outsider(run: SampleRun) -> Mutant:
    """A process that is not in the view delivers a message."""
    row = _delivery(run, "d", POSITION)
    changed = run.changed(inserting_after(row, row._replace(member="x")))
    return Mutant(changed, Expected("Integrity", POSITION, (), ("x#1",)))


def fifo_stepped_back(run: SampleRun) -> Mutant:
    """All agree on an order in which a message precedes its predecessor of the same sender and level."""
    first = _delivery(run, "a", POSITION)
    second = next(
        row
        for row in run.messages
        if row.event == DELIVERED and id_of(row) == id_of(first._replace(first=first.first + 1))
    )
    changed = run.changed(exchanging_in_order(first, second))
    return Mutant(changed, Expected("FIFO among equals", POSITION, (id_of(second),), (f"{first.sender}#1",)))


def priority_inverted(run: SampleRun) -> Mutant:
    """The orderer orders a message before one with a lower sort key."""
    policy = parse_starvation(run.manifest.starvation)
    entered = {id_of(row): row for row in run.messages if row.member == "a" and _enters(row)}
    left = {row.position: row for row in run.messages if row.event == SENT and row.position >= 0}
    for position, ahead in left.items():
        behind = left.get(position + 1)
        if behind is None:
            continue
        first, second = entered[id_of(ahead)], entered[id_of(behind)]
        keys = [policy.sort_key(row.level, row.time_ns) for row in (first, second)]
        if max(first.step, second.step) < ahead.step and keys[0] < keys[1]:
            changed = run.changed(exchanging_in_order(ahead, behind))
            expected = Expected("Priority", position, (id_of(ahead), id_of(behind)), ("a#1",))
            return Mutant(changed, expected)
    raise AssertionError("the run has a backlog")


def sending_inverted(run: SampleRun) -> Mutant:
    """Member b sends a message of its own before a waiting one with a lower sort key."""
    policy = parse_starvation(run.manifest.starvation)
    offered = {id_of(row): row for row in run.messages if (row.event, row.member) == (BROADCAST, "b")}
    sent = [row for row in run.messages if (row.event, row.member, row.sender) == (SENT, "b", "b")]
    key = {message: policy.sort_key(row.level, row.time_ns) for message, row in offered.items()}
    for ahead, behind in pairwise(sent):
        one, other = id_of(ahead), id_of(behind)
        if key[one] < key[other] and max(offered[one].step, offered[other].step) < ahead.step:
            changed = run.changed(_exchanging(ahead, behind))
            return Mutant(changed, Expected("Priority", None, (one, other), ("b#1",)))
    raise AssertionError("the member has a backlog")


def never_sent(run: SampleRun) -> Mutant:
    """The most urgent message at member b is never sent; the least urgent overtaker is reported."""
    offered = [row for row in run.messages if (row.event, row.member) == (BROADCAST, "b")]
    urgent = max(offered, key=lambda row: row.level)
    sent = [row for row in run.messages if (row.event, row.member, row.sender) == (SENT, "b", "b")]
    after = [row for row in sent if row.step > urgent.step and row.level < urgent.level]
    worst = max(after, key=lambda row: (-row.level, row.step))
    gone = next(row for row in sent if id_of(row) == id_of(urgent))
    expected = Expected("Priority", None, (id_of(urgent), id_of(worst)), ("b#1",))
    return Mutant(run.changed(without(gone)), expected)


def never_ordered(run: SampleRun) -> Mutant:
    """The most urgent waiting message is never ordered; the least urgent overtaker is reported."""
    urgent = max(
        (row for row in run.messages if row.member == "a" and _enters(row)), key=lambda row: row.level
    )
    leave = next(
        row for row in run.messages if row.event == SENT and row.position >= 0 and id_of(row) == id_of(urgent)
    )
    after = [
        row for row in run.messages if row.event == SENT and row.position >= 0 and row.step > urgent.step
    ]
    worst = max((row for row in after if row.level < urgent.level), key=lambda row: (-row.level, row.step))
    expected = Expected("Priority", worst.position, (id_of(urgent), id_of(worst)), ("a#1",))
    return Mutant(run.changed(without(leave)), expected)


def ordered_without_queueing(run: SampleRun) -> Mutant:
    """The orderer gives a position to a message that it never received."""
    row = _delivery(run, "a", POSITION)
    entry = next(other for other in run.messages if _enters(other) and id_of(other) == id_of(row))
    return Mutant(run.changed(without(entry)), Expected("Priority", POSITION, (id_of(row),), ("a#1",)))


ANY_POLICY = (
    delivery_swapped_in_time,
    delivery_swapped_in_content,
    position_wrong,
    position_left_out,
    delivery_dropped,
    tail_lost,
    delivery_repeated,
    never_broadcast,
    broadcast_recorded_twice,
    broadcast_after_its_delivery,
    sender_lacks_what_it_caused,
    first_delivery_lost_everywhere,
    last_delivery_lost_everywhere,
    outsider,
    fifo_stepped_back,
    ordered_without_queueing,
)


def _delivery(run: SampleRun, member: str, position: int) -> MessageRow:
    return next(
        row for row in run.messages if (row.event, row.member, row.position) == (DELIVERED, member, position)
    )


def _enters(row: MessageRow) -> bool:
    return row.event == RECEIVED and row.position < 0


def _with_message(row: MessageRow, of: MessageRow) -> MessageRow:
    return row._replace(
        sender=of.sender,
        sender_incarnation=of.sender_incarnation,
        level=of.level,
        first=of.first,
        priorities=of.priorities,
    )


def _exchanging(one: MessageRow, other: MessageRow) -> Change:
    """Exchange the messages of two rows; time and position of each row stay."""
    new: dict[TraceRow, TraceRow] = {one: _with_message(one, other), other: _with_message(other, one)}
    return lambda rows: [new.get(row, row) for row in rows]


def without(*gone: TraceRow) -> Change:
    return lambda rows: [row for row in rows if row not in gone]


def replacing(old: TraceRow, new: TraceRow) -> Change:
    return lambda rows: [new if row == old else row for row in rows]


def inserting_after(there: TraceRow, new: TraceRow) -> Change:
    return lambda rows: [copy for row in rows for copy in ((row, new) if row == there else (row,))]


def exchanging_in_order(one: MessageRow, other: MessageRow) -> Change:
    """Exchange the positions of two messages, in what the orderer sends and at every member."""

    def change(row: TraceRow) -> TraceRow:
        if isinstance(row, MessageRow) and row.position >= 0:
            if id_of(row) == id_of(one):
                return _with_message(row, other)
            if id_of(row) == id_of(other):
                return _with_message(row, one)
        return row

    return lambda rows: [change(row) for row in rows]
