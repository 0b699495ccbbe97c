"""Damages the rows of a correct run, so that a checker must find it. Each function does one thing wrong."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from priocast.trace.schema import BROADCAST, DELIVERED, NO_POSITION, RECEIVED, SENT, VIEW, MessageRow
from simulation.rows import Row
from simulation.scenarios import HIGH, LOW, MILLISECOND


class Damaged(NamedTuple):
    """The damaged rows, and the position at which the damage must be found, if it has one."""

    rows: list[Row]
    position: int | None = None


Damage = Callable[[list[Row]], Damaged]
Select = Callable[[Row], bool]


def is_event(event: str, member: str, view: int) -> Select:
    return lambda row: (row.event, row.member, row.view) == (event, member, view)


def about_messages(rows: list[Row]) -> list[tuple[int, MessageRow]]:
    """The rows of the table `messages`, with their index among all rows."""
    return [(index, row) for index, row in enumerate(rows) if isinstance(row, MessageRow)]


def change(event: str, member: str, in_view: int, **changes: object) -> Damage:
    """Change the first row of this kind that a member has in a view."""
    selected = is_event(event, member, in_view)

    def damage(rows: list[Row]) -> Damaged:
        index = next(index for index, row in enumerate(rows) if selected(row))
        changed = rows[index]._replace(**changes)
        return Damaged([*rows[:index], changed, *rows[index + 1 :]])

    return damage


def rename(row: Row, message: Row) -> Row:
    """A row, about the messages of another row."""
    return row._replace(sender=message.sender, level=message.level, first=message.first, count=message.count)


def swap(rows: list[Row], first: int, second: int) -> list[Row]:
    """Let two rows name each other's messages, each at its own time and position."""
    damaged = list(rows)
    damaged[first] = rename(rows[first], rows[second])
    damaged[second] = rename(rows[second], rows[first])
    return damaged


def deliveries(rows: list[Row], member: str) -> list[int]:
    return [index for index, row in enumerate(rows) if (row.event, row.member) == (DELIVERED, member)]


def stream_of(row: Row) -> tuple[str, int]:
    return row.sender, row.level


# Deliveries


def swap_neighbours(rows: list[Row]) -> Damaged:
    """Member c delivers two consecutive messages of different streams in the wrong order."""
    of_c = deliveries(rows, "c")
    first, second = next(
        (one, other) for one, other in pairwise(of_c[20:]) if stream_of(rows[one]) != stream_of(rows[other])
    )
    return Damaged(swap(rows, first, second), rows[first].position)


def drop(rows: list[Row]) -> Damaged:
    """Member c does not deliver one message in the middle."""
    index = deliveries(rows, "c")[30]
    after = next(
        rows[later]
        for later in deliveries(rows, "c")
        if later > index and stream_of(rows[later]) == stream_of(rows[index])
    )
    return Damaged(rows[:index] + rows[index + 1 :], after.position)


def drop_last(rows: list[Row]) -> Damaged:
    """Member c does not deliver the last message."""
    index = deliveries(rows, "c")[-1]
    return Damaged(rows[:index] + rows[index + 1 :], rows[index].position)


def duplicate(rows: list[Row]) -> Damaged:
    """Member b delivers a message twice."""
    index = deliveries(rows, "b")[10]
    return Damaged(rows[: index + 1] + rows[index:], rows[index].position)


def invent(rows: list[Row]) -> Damaged:
    """Member b delivers a message that nobody broadcast."""
    index = deliveries(rows, "b")[10]
    invented = rows[index]._replace(first=10_000)
    return Damaged([*rows[:index], invented, *rows[index + 1 :]], rows[index].position)


def misdeliver(rows: list[Row]) -> Damaged:
    """Member b delivers a message that is addressed to others."""
    index = deliveries(rows, "b")[10]
    addressed = rows[index]._replace(to="a,c")
    return Damaged([*rows[:index], addressed, *rows[index + 1 :]], rows[index].position)


def reverse_stream(rows: list[Row]) -> Damaged:
    """All members deliver two messages of one stream in the same, wrong order."""
    stream = [index for index in deliveries(rows, "b") if stream_of(rows[index]) == ("b", LOW)]
    broadcast_at = {
        row.first: row.time_ns
        for _, row in about_messages(rows)
        if (row.event, *stream_of(row)) == (BROADCAST, "b", LOW)
    }
    first, second = next(
        (rows[one].position, rows[other].position)
        for one, other in pairwise(stream)
        if broadcast_at[rows[other].first] + MILLISECOND < rows[one].time_ns
    )
    damaged = rows
    for member in "abc":
        of_member = deliveries(rows, member)
        damaged = swap(damaged, of_member[first], of_member[second])
    return Damaged(damaged, second)


def deliver_from_earlier_incarnation(rows: list[Row]) -> Damaged:
    """A message of a second incarnation is delivered as one of the first, which is not in the view."""
    index = next(
        index for index, row in enumerate(rows) if row.event == DELIVERED and row.sender_incarnation == 2
    )
    return Damaged([*rows[:index], rows[index]._replace(sender_incarnation=1), *rows[index + 1 :]])


# Queues


def enters(member: str) -> Select:
    """What member b has broadcast, or what another member has received without a position."""
    if member == "b":
        return lambda row: (row.event, row.member) == (BROADCAST, "b")
    return lambda row: (row.event, row.member, row.position) == (RECEIVED, member, NO_POSITION)


def leaves(member: str) -> Select:
    """What member b has sent of its own messages, or what another member has sent with a position."""
    if member == "b":
        return lambda row: (row.event, row.member, row.sender) == (SENT, "b", "b") and row.bytes > 0
    return lambda row: (row.event, row.member) == (SENT, member) and row.position != NO_POSITION


def invert_queue(member: str) -> Damage:
    """A low message leaves the queue of a member while a high one waits there."""

    def damage(rows: list[Row]) -> Damaged:
        entered: dict[tuple[str, int, int], int] = {}
        left: dict[tuple[str, int, int], int] = {}
        for index, row in about_messages(rows):
            for number in range(row.first, row.first + row.count):
                if enters(member)(row):
                    entered[row.sender, row.level, number] = index
                elif leaves(member)(row) and row.count == 1 and (row.sender, row.level, number) in entered:
                    left.setdefault((row.sender, row.level, number), index)
        first, second = next(
            (left[high], left[low])
            for high in left
            for low in left
            if (high[1], low[1]) == (HIGH, LOW) and entered[low] < left[high] < left[low]
        )
        position = rows[first].position
        return Damaged(swap(rows, first, second), None if position == NO_POSITION else position)

    return damage


def order_unreceived(rows: list[Row]) -> Damaged:
    """The sequencer orders a message that it never received."""
    index = next(index for index, row in enumerate(rows) if enters("a")(row) and row.sender == "b")
    return Damaged(rows[:index] + rows[index + 1 :])


# Views


def without_delivery(rows: list[Row], member: str, message: Row) -> list[Row]:
    """The rows without the delivery of a message at a member."""

    def is_delivery(row: Row) -> bool:
        if (row.event, row.member) != (DELIVERED, member):
            return False
        return (*stream_of(row), row.sender_incarnation, row.first) == (
            *stream_of(message),
            message.sender_incarnation,
            message.first,
        )

    return [row for row in rows if not is_delivery(row)]


def drop_last_of_view(rows: list[Row]) -> Damaged:
    """Member c continues to view 2 without the last message of a, which crashed, in view 1."""
    last = [row for row in rows if is_event(DELIVERED, "c", 1)(row) and row.sender == "a"][-1]
    return Damaged(without_delivery(rows, "c", last), last.position)


def lose_last_of_crashed(safe: bool) -> Damage:
    """Only member a, which crashes, delivers a message at the end of view 1; nothing is ordered after it."""

    def damage(rows: list[Row]) -> Damaged:
        last = [row for row in rows if is_event(DELIVERED, "a", 1)(row)][-1]
        known = {row.position for row in rows if is_event(DELIVERED, "b", 1)(row)}
        alone = last._replace(position=max(known) + 1, first=last.first, safe=safe)
        kept = without_delivery(without_delivery(rows, "b", last), "c", last)
        first_view = [row for row in kept if row.view < 2 or row.event == VIEW]
        index = first_view.index(last)
        return Damaged([*first_view[:index], alone, *first_view[index + 1 :]])

    return damage


def order_twice(rows: list[Row]) -> Damaged:
    """Members b and c deliver as the first message of view 2 what only a delivered in view 1."""
    last = [row for row in rows if is_event(DELIVERED, "a", 1)(row)][-1]
    damaged, _ = lose_last_of_crashed(safe=False)(rows)
    for member in ("b", "c"):
        index = next(index for index, row in enumerate(damaged) if is_event(VIEW, member, 2)(row))
        again = last._replace(member=member, view=2, coordinator="b#1", position=damaged[index].position)
        damaged.insert(index + 1, again)
    return Damaged(damaged)
