"""Damages: ways in which a run can be made wrong, at a place that the dice choose."""

import random
from collections.abc import Callable

from pipeline.sample_runs import SampleRun
from pipeline.story import orderer_of as sender_of
from pipeline.story import process_of
from priocast.membership.packets import Ordering
from priocast.trace.recorder import view_order
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, STATE, STOPPED, VIEW, Row

_WAYS = [
    view_order(Ordering(*way))
    for way in (
        ("sequencer-ub", True, "none"),
        ("sequencer-ub", True, "ageing:5us"),
        ("sequencer-ub", False, "none"),
        ("token-ring", True, "flush:2ms"),
        ("time-parts/sequencer-ub", True, "none"),
    )
]

Damage = Callable[[list[Row], random.Random], list[Row]]


def damaged(run: SampleRun, dice: random.Random, damages: tuple[Damage, ...], count: int) -> SampleRun:
    """The run with so many damages."""
    for _ in range(count):
        damage = dice.choice(damages)
        run = run.changed(lambda rows: damage(rows, dice))  # noqa: B023 (called at once)
    return run


def drop(rows: list[Row], dice: random.Random) -> list[Row]:
    kind = dice.choice((BROADCAST, DELIVERED, DELIVERED, RECEIVED, SENT))
    if places := _places(rows, kind):
        del rows[dice.choice(places)]
    return rows


def repeat(rows: list[Row], dice: random.Random) -> list[Row]:
    row = rows[dice.choice(_places(rows, DELIVERED))]
    rows.insert(dice.randrange(rows.index(row), len(rows)), row)
    return rows


def exchange(rows: list[Row], dice: random.Random) -> list[Row]:
    """Two rows of one kind at one process change places in time."""
    kind = dice.choice((DELIVERED, DELIVERED, SENT, RECEIVED))
    process = process_of(rows[dice.choice(_places(rows, kind))])
    places = [place for place in _places(rows, kind) if process_of(rows[place]) == process]
    if len(places) > 1:
        one, other = dice.sample(places, 2)
        rows[one], rows[other] = rows[other], rows[one]
    return rows


def shuffle_departures(rows: list[Row], dice: random.Random) -> list[Row]:
    """The orderers let messages out in any order at all, which also breaks the order within a level."""
    places = [place for place in _places(rows, SENT) if rows[place].position >= 0]
    process = process_of(rows[dice.choice(places)])
    places = [place for place in places if process_of(rows[place]) == process]
    shuffled = [rows[place] for place in places]
    dice.shuffle(shuffled)
    for place, row in zip(places, shuffled, strict=True):
        rows[place] = row
    return rows


def shuffle_sendings(rows: list[Row], dice: random.Random) -> list[Row]:
    """A member sends its own messages in any order at all."""
    own = [place for place in _places(rows, SENT) if process_of(rows[place]) == sender_of(rows[place])]
    process = process_of(rows[dice.choice(own)])
    places = [place for place in own if process_of(rows[place]) == process]
    shuffled = [rows[place] for place in places]
    dice.shuffle(shuffled)
    for place, row in zip(places, shuffled, strict=True):
        rows[place] = row
    return rows


def misplace(rows: list[Row], dice: random.Random) -> list[Row]:
    place = dice.choice(_places(rows, DELIVERED))
    wrong = max(0, rows[place].position + dice.choice((-2, -1, 1, 2, 40)))
    rows[place] = rows[place]._replace(position=wrong)
    return rows


def lose(rows: list[Row], dice: random.Random) -> list[Row]:
    """Nobody delivers the batches that a message is in."""
    lost = rows[dice.choice(_places(rows, DELIVERED))]

    def holds_it(row: Row) -> bool:
        one_stream = (row.event, row.sender, row.sender_incarnation, row.level) == (
            DELIVERED,
            lost.sender,
            lost.sender_incarnation,
            lost.level,
        )
        return one_stream and row.first <= lost.first < row.first + row.count

    return [row for row in rows if not holds_it(row)]


def misinsert(rows: list[Row], dice: random.Random) -> list[Row]:
    """Everybody delivers two messages in the other order that follow each other, each alone in its row."""
    alone = {
        (row.view, row.coordinator, row.position): row
        for row in rows
        if row.event == DELIVERED and row.count == 1
    }
    pairs = [(row, alone.get((*place[:2], place[2] + 1))) for place, row in alone.items()]
    one, other = dice.choice([(row, next_row) for row, next_row in pairs if next_row])
    return exchange_places(rows, one, other)


def exchange_places(rows: list[Row], one: Row, other: Row) -> list[Row]:
    """Everybody delivers one message where the other one was, at the same time as before."""
    names = ("sender", "sender_incarnation", "level", "first", "priorities", "safe", "to")

    def exchange(row: Row) -> Row:
        for this, that in ((one, other), (other, one)):
            same = ("event", "view", "coordinator", "position", "count")
            if all(getattr(row, name) == getattr(this, name) for name in same):
                return row._replace(**{name: getattr(that, name) for name in names})
        return row

    return [exchange(row) for row in rows]


def deliver_elsewhere(rows: list[Row], dice: random.Random) -> list[Row]:
    """What one process delivered in a view, it says it delivered in another."""
    place = dice.choice(_places(rows, DELIVERED))
    view = rows[dice.choice(_places(rows, VIEW))]
    rows[place] = rows[place]._replace(view=view.view, coordinator=view.coordinator)
    return rows


def deliver_again_elsewhere(rows: list[Row], dice: random.Random) -> list[Row]:
    """A process delivers once more what was delivered, in a view of its own."""
    row = rows[dice.choice(_places(rows, DELIVERED))]
    place = dice.choice(_places(rows, VIEW))
    told = rows[place]
    again = row._replace(
        member=told.member,
        incarnation=told.incarnation,
        view=told.view,
        coordinator=told.coordinator,
        position=told.position + dice.randint(0, 3),
    )
    rows.insert(dice.randint(place + 1, len(rows)), again)
    return rows


def tell_otherwise(rows: list[Row], dice: random.Random) -> list[Row]:
    """One process is told something else of a view than others."""
    place = dice.choice(_places(rows, VIEW))
    row = rows[place]
    members = row.peer.split(",")
    rows[place] = dice.choice(
        (
            row._replace(peer=",".join(reversed(members))),
            row._replace(peer=",".join([*members, "z#1"])),
            row._replace(peer=",".join(members[:-1]) or "z#1"),
            row._replace(position=row.position + dice.choice((-1, 1, 3))),
            row._replace(sender="", sender_incarnation=0),
            row._replace(order=str(dice.choice(_WAYS))),
            row._replace(view=row.view + dice.choice((-1, 1))),
            row._replace(coordinator="z#1"),
        )
    )
    return rows


def forget(rows: list[Row], dice: random.Random) -> list[Row]:
    """A view, a state or an end is not on record."""
    del rows[dice.choice([*_places(rows, VIEW), *_places(rows, STATE), *_places(rows, STOPPED)])]
    return rows


def move(rows: list[Row], dice: random.Random) -> list[Row]:
    """A view, a state or a delivery comes at another time."""
    kind = dice.choice((VIEW, STATE, DELIVERED))
    if places := _places(rows, kind):
        place = dice.choice(places)
        row = rows.pop(place)
        rows.insert(dice.randrange(len(rows)), row)
    return rows


def shift_state(rows: list[Row], dice: random.Random) -> list[Row]:
    for place in _places(rows, STATE):
        rows[place] = rows[place]._replace(position=max(0, rows[place].position + dice.choice((-3, 1, 5))))
    return rows


def readdress(rows: list[Row], dice: random.Random) -> list[Row]:
    """A sender asked for other addressees than the delivery says."""
    place = dice.choice(_places(rows, dice.choice((BROADCAST, DELIVERED))))
    rows[place] = rows[place]._replace(to=dice.choice(("a", "b,c", "z")))
    return rows


def impersonate(rows: list[Row], dice: random.Random) -> list[Row]:
    """Somebody's messages are said to be of another life."""
    of = rows[dice.choice(_places(rows, BROADCAST))]

    def change(row: Row) -> Row:
        same = (row.sender, row.sender_incarnation, row.level) == (of.sender, of.sender_incarnation, of.level)
        return row._replace(sender_incarnation=9) if same and row.event != VIEW and row.count else row

    return [change(row) for row in rows]


def cut_short(rows: list[Row], dice: random.Random) -> list[Row]:
    """The record of a process just ends."""
    process = process_of(dice.choice(rows))
    own = [place for place, row in enumerate(rows) if process_of(row) == process]
    end = dice.choice(own)
    return [row for place, row in enumerate(rows) if process_of(row) != process or place <= end]


OF_MESSAGES = (drop, repeat, exchange, shuffle_departures, shuffle_sendings, misplace, lose)
OF_REORDERED = (drop, repeat, exchange, shuffle_sendings, misplace, lose, misinsert, misinsert)
OF_VIEWS = (
    *OF_MESSAGES,
    deliver_elsewhere,
    deliver_again_elsewhere,
    tell_otherwise,
    tell_otherwise,
    forget,
    move,
    shift_state,
    readdress,
    impersonate,
    cut_short,
)


def _places(rows: list[Row], kind: str) -> list[int]:
    return [place for place, row in enumerate(rows) if row.event == kind]
