"""Damages: ways in which a run can be made wrong, at a row that is chosen at random."""

import random
from collections.abc import Callable
from contextlib import suppress

from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import process_of, sender_of
from priocast.membership.packets import Ordering
from priocast.trace.recorder import view_order
from priocast.trace.schema import (
    BROADCAST,
    DELIVERED,
    RECEIVED,
    SENT,
    STATE,
    STOPPED,
    VIEW,
    GroupEventRow,
    MessageRow,
    TraceRow,
)

_ORDERS = [
    view_order(Ordering(*options))
    for options in (
        ("sequencer-ub", True, "none"),
        ("sequencer-ub", True, "ageing:5us"),
        ("sequencer-ub", False, "none"),
        ("token-ring", True, "flush:2ms"),
        ("time-parts/sequencer-ub", True, "none"),
    )
]

Damage = Callable[[list[TraceRow], random.Random], list[TraceRow]]


def damaged(run: SampleRun, rng: random.Random, damages: tuple[Damage, ...], count: int) -> SampleRun:
    """The run with this many damages; one that would leave no row is skipped, as such a run is not read."""
    for _ in range(count):
        damage = rng.choice(damages)
        with suppress(IndexError):  # the run has no row that it could damage
            changed = run.changed(lambda rows: damage(rows, rng))  # noqa: B023 (called at once)
            run = changed if changed.rows else run
    return run


def drop(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    kind = rng.choice((BROADCAST, DELIVERED, DELIVERED, RECEIVED, SENT))
    if indexes := _indexes(rows, kind):
        del rows[rng.choice(indexes)]
    return rows


def repeat(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    row = rows[rng.choice(_indexes(rows, DELIVERED))]
    rows.insert(rng.randrange(rows.index(row), len(rows)), row)
    return rows


def exchange(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """Two rows of one kind at one process are exchanged in time."""
    kind = rng.choice((DELIVERED, DELIVERED, SENT, RECEIVED))
    process = process_of(rows[rng.choice(_indexes(rows, kind))])
    indexes = [index for index in _indexes(rows, kind) if process_of(rows[index]) == process]
    if len(indexes) > 1:
        one, other = rng.sample(indexes, 2)
        rows[one], rows[other] = rows[other], rows[one]
    return rows


def shuffle_departures(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """An orderer orders messages in a random order, which also breaks the order within a level."""
    indexes = [index for index in _indexes(rows, SENT) if _message_row(rows, index).position >= 0]
    process = process_of(rows[rng.choice(indexes)])
    indexes = [index for index in indexes if process_of(rows[index]) == process]
    shuffled = [rows[index] for index in indexes]
    rng.shuffle(shuffled)
    for index, row in zip(indexes, shuffled, strict=True):
        rows[index] = row
    return rows


def shuffle_sendings(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A member sends its own messages in a random order."""
    own = [
        index
        for index, row in enumerate(rows)
        if isinstance(row, MessageRow) and row.event == SENT and process_of(row) == sender_of(row)
    ]
    process = process_of(rows[rng.choice(own)])
    indexes = [index for index in own if process_of(rows[index]) == process]
    shuffled = [rows[index] for index in indexes]
    rng.shuffle(shuffled)
    for index, row in zip(indexes, shuffled, strict=True):
        rows[index] = row
    return rows


def misposition(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    index = rng.choice(_indexes(rows, DELIVERED))
    row = _message_row(rows, index)
    rows[index] = row._replace(position=max(0, row.position + rng.choice((-2, -1, 1, 2, 40))))
    return rows


def lose(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """Nobody delivers the batches that contain a message."""
    lost = _message_row(rows, rng.choice(_indexes(rows, DELIVERED)))

    def contains_it(row: TraceRow) -> bool:
        return (
            isinstance(row, MessageRow)
            and (row.event, row.level) == (DELIVERED, lost.level)
            and sender_of(row) == sender_of(lost)
            and row.first <= lost.first < row.first + row.count
        )

    return [row for row in rows if not contains_it(row)]


def lose_end(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """Nobody delivers the first or the last batch of a view."""
    view = rows[rng.choice(_indexes(rows, VIEW))]
    here = {
        index: _message_row(rows, index).position
        for index in _indexes(rows, DELIVERED)
        if (rows[index].view, rows[index].coordinator) == (view.view, view.coordinator)
    }
    lost = rng.choice((min, max))(here.values(), default=-1)
    return [row for index, row in enumerate(rows) if here.get(index) != lost]


def broadcast_twice(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A broadcast is recorded again."""
    index = rng.choice(_indexes(rows, BROADCAST))
    rows.insert(rng.randrange(index, len(rows)), rows[index])
    return rows


def move_arrival(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A message arrives at a member earlier or later: the member had consumed less or more by then."""
    index = rng.choice([index for index in _indexes(rows, RECEIVED) if _message_row(rows, index).bytes])
    row = rows.pop(index)
    own = [each for each, other in enumerate(rows) if process_of(other) == process_of(row)]
    rows.insert(rng.choice(own), row)
    return rows


def misinsert(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """All members deliver two consecutive messages in the opposite order, each alone in its row."""
    alone = {
        (row.view, row.coordinator, row.position): row
        for row in rows
        if isinstance(row, MessageRow) and row.event == DELIVERED and row.count == 1
    }
    pairs = [(row, alone.get((*position[:2], position[2] + 1))) for position, row in alone.items()]
    one, other = rng.choice([(row, next_row) for row, next_row in pairs if next_row])
    return exchange_positions(rows, one, other)


def exchange_positions(rows: list[TraceRow], one: MessageRow, other: MessageRow) -> list[TraceRow]:
    """All members deliver each message at the position of the other, at the same times as before."""
    names = ("sender", "sender_incarnation", "level", "first", "priorities", "safe", "to")

    def exchange(row: TraceRow) -> TraceRow:
        for this, that in ((one, other), (other, one)):
            same = ("event", "view", "coordinator", "position", "count")
            if isinstance(row, MessageRow) and all(
                getattr(row, name) == getattr(this, name) for name in same
            ):
                return row._replace(**{name: getattr(that, name) for name in names})
        return row

    return [exchange(row) for row in rows]


def deliver_elsewhere(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A process records a delivery in another view."""
    index = rng.choice(_indexes(rows, DELIVERED))
    view = rows[rng.choice(_indexes(rows, VIEW))]
    rows[index] = rows[index]._replace(view=view.view, coordinator=view.coordinator)
    return rows


def deliver_again_elsewhere(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A process delivers a delivered message again, in one of its views."""
    row = _message_row(rows, rng.choice(_indexes(rows, DELIVERED)))
    index = rng.choice(_indexes(rows, VIEW))
    view = _group_event(rows, index)
    again = row._replace(
        member=view.member,
        incarnation=view.incarnation,
        view=view.view,
        coordinator=view.coordinator,
        position=view.position + rng.randint(0, 3),
    )
    rows.insert(rng.randint(index + 1, len(rows)), again)
    return rows


def receive_otherwise(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """One process receives a view that differs from what the others receive."""
    index = rng.choice(_indexes(rows, VIEW))
    row = rows[index]
    assert isinstance(row, GroupEventRow)
    order = rng.choice(_ORDERS)
    rows[index] = rng.choice(
        (
            row._replace(members=tuple(reversed(row.members))),
            row._replace(members=(*row.members, "z#1")),
            row._replace(members=row.members[:-1] or ("z#1",)),
            row._replace(position=row.position + rng.choice((-1, 1, 3))),
            row._replace(orderer=""),
            row._replace(
                order=order.order,
                starvation=order.policy,
                priorities_act=order.priorities_act,
                sends_by_priority=order.sends_by_priority,
            ),
            row._replace(view=row.view + rng.choice((-1, 1))),
            row._replace(coordinator="z#1"),
            row._replace(joined=("z",), left=row.failed, failed=()),
        )
    )
    return rows


def forget(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A view, a state or a stop is not recorded."""
    del rows[rng.choice([*_indexes(rows, VIEW), *_indexes(rows, STATE), *_indexes(rows, STOPPED)])]
    return rows


def move(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """A view, a state or a delivery is recorded at another time."""
    kind = rng.choice((VIEW, STATE, DELIVERED))
    if indexes := _indexes(rows, kind):
        index = rng.choice(indexes)
        row = rows.pop(index)
        rows.insert(rng.randrange(len(rows)), row)
    return rows


def shift_state(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    for index in _indexes(rows, STATE):
        row = _group_event(rows, index)
        rows[index] = row._replace(position=max(0, row.position + rng.choice((-3, 1, 5))))
    return rows


def readdress(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """The sender asked for other recipients than the delivery contains."""
    index = rng.choice(_indexes(rows, rng.choice((BROADCAST, DELIVERED))))
    rows[index] = _message_row(rows, index)._replace(to=rng.choice(("a", "b,c", "z")))
    return rows


def impersonate(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """The messages of a sender are recorded with another incarnation."""
    of = _message_row(rows, rng.choice(_indexes(rows, BROADCAST)))

    def change(row: TraceRow) -> TraceRow:
        if not isinstance(row, MessageRow) or (sender_of(row), row.level) != (sender_of(of), of.level):
            return row
        return row._replace(sender_incarnation=9)

    return [change(row) for row in rows]


def truncate(rows: list[TraceRow], rng: random.Random) -> list[TraceRow]:
    """The record of a process ends early."""
    process = process_of(rng.choice(rows))
    own = [index for index, row in enumerate(rows) if process_of(row) == process]
    end = rng.choice(own)
    return [row for index, row in enumerate(rows) if process_of(row) != process or index <= end]


OF_MESSAGES = (
    drop,
    repeat,
    exchange,
    shuffle_departures,
    shuffle_sendings,
    misposition,
    lose,
    lose_end,
    broadcast_twice,
)
OF_REORDERED = (
    drop,
    repeat,
    exchange,
    shuffle_sendings,
    misposition,
    lose,
    lose_end,
    broadcast_twice,
    misinsert,
    misinsert,
    move_arrival,
    move_arrival,
)
OF_VIEWS = (
    *OF_MESSAGES,
    deliver_elsewhere,
    deliver_again_elsewhere,
    receive_otherwise,
    receive_otherwise,
    forget,
    move,
    shift_state,
    readdress,
    impersonate,
    truncate,
)


#: Not every protocol has a member that orders alone.
OF_SIMULATED = tuple(damage for damage in OF_VIEWS if damage is not shuffle_departures)


def _indexes(rows: list[TraceRow], kind: str) -> list[int]:
    return [index for index, row in enumerate(rows) if row.event == kind]


def _group_event(rows: list[TraceRow], index: int) -> GroupEventRow:
    row = rows[index]
    assert isinstance(row, GroupEventRow)
    return row


def _message_row(rows: list[TraceRow], index: int) -> MessageRow:
    row = rows[index]
    assert isinstance(row, MessageRow)
    return row
