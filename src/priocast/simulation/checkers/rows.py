"""Reads the rows of a trace for the checkers: only this module knows the columns of group events."""

from typing import NamedTuple

from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import HIGHEST
from priocast.core.view_reason import ViewReason
from priocast.trace.schema import GroupEventRow, MessageRow, TraceRow

Key = tuple[str, int, int, int]
"""A message: name and incarnation of its sender, level, number."""

ViewKey = tuple[int, str]
"""A view: its number and its coordinator."""


class ViewEvent(NamedTuple):
    """An application was notified of a view; `order` says how it is ordered, and `orderer` by whom."""

    process: str
    view: ViewKey
    members: tuple[str, ...]
    position: int
    orderer: str
    order: str
    reason: ViewReason
    time_ns: int


class DepartureEvent(NamedTuple):
    """An incarnation stopped being a member, and said so; `reason` is that of the view without it."""

    process: str
    voluntary: bool
    reason: ViewReason

    @property
    def eviction_cause(self) -> str:
        """Why it was evicted; empty if it was not."""
        name = name_of(self.process)
        return next((each.cause for each in self.reason.evicted if each.member == name), "")

    @property
    def was_slow(self) -> bool:
        """Whether it was evicted because it did not keep up."""
        return "slow" in self.eviction_cause


class StateEvent(NamedTuple):
    """An application took over the group's state as it was before this position."""

    process: str
    position: int


def keys_of(row: MessageRow) -> list[Key]:
    """The messages of a row."""
    sender, incarnation, level = row.sender, row.sender_incarnation, row.level
    return [(sender, incarnation, level, number) for number in range(row.first, row.first + row.count)]


def message_name(key: Key) -> str:
    """A message as `MessageId` writes it."""
    sender, incarnation, level, number = key
    return str(MessageId(ProcessId(sender, incarnation), level, number))


def process_of(row: TraceRow) -> str:
    """The incarnation that a row is about, as `ProcessId` writes it."""
    return f"{row.member}#{row.incarnation}"


def sender_of(row: MessageRow) -> str:
    """The incarnation whose messages a row is about."""
    return f"{row.sender}#{row.sender_incarnation}"


def name_of(process: str) -> str:
    """The name of the process that an incarnation belongs to."""
    return process.rpartition("#")[0]


def parse_process(process: str) -> ProcessId:
    """An incarnation, from its text."""
    name, _, incarnation = process.rpartition("#")
    return ProcessId(name, int(incarnation))


def view_of(row: TraceRow) -> ViewKey:
    """The view that a row is about."""
    return row.view, row.coordinator


def view_name(view: ViewKey) -> str:
    """A view as `ViewId` writes it."""
    return f"{view[0]}@{view[1]}"


def urgency_of(row: MessageRow) -> int:
    """The level by which the messages of a row leave a queue."""
    return HIGHEST if row.priorities else row.level


def is_addressed_to(to: str, name: str) -> bool:
    """Whether a message with these recipients, as a row has them, is for the process of this name."""
    return not to or name in to.split(",")


def view_event(row: GroupEventRow) -> ViewEvent:
    """The group event of a row of the kind `view`."""
    return ViewEvent(
        process_of(row),
        view_of(row),
        row.members,
        row.position,
        row.orderer,
        str(row.view_order),
        row.reason,
        row.time_ns,
    )


def departure_event(row: GroupEventRow) -> DepartureEvent:
    """The group event of a row of the kind `stopped`."""
    return DepartureEvent(process_of(row), row.voluntary, row.reason)


def state_event(row: GroupEventRow) -> StateEvent:
    """The group event of a row of the kind `state`."""
    return StateEvent(process_of(row), row.position)
