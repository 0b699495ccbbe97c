"""Reads the rows of a trace for the checkers: only this module knows the columns of group events."""

import re
from typing import NamedTuple, cast

from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import HIGHEST
from priocast.core.view_reason import Eviction, EvictionCause, ViewReason
from priocast.trace.schema import Row

Key = tuple[str, int, int, int]
"""A message: name and incarnation of its sender, level, number."""

ViewKey = tuple[int, str]
"""A view: its number and its coordinator."""

_EVICTED_PREFIX = "evicted: "
_ORDER_CHANGES = "the order changed to "


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


def keys_of(row: Row) -> list[Key]:
    """The messages of a row."""
    sender, incarnation, level = row.sender, row.sender_incarnation, row.level
    return [(sender, incarnation, level, number) for number in range(row.first, row.first + row.count)]


def message_name(key: Key) -> str:
    """A message as `MessageId` writes it."""
    sender, incarnation, level, number = key
    return str(MessageId(ProcessId(sender, incarnation), level, number))


def process_of(row: Row) -> str:
    """The incarnation that a row is about, as `ProcessId` writes it."""
    return f"{row.member}#{row.incarnation}"


def sender_of(row: Row) -> str:
    """The incarnation whose messages a row is about."""
    return f"{row.sender}#{row.sender_incarnation}"


def name_of(process: str) -> str:
    """The name of the process that an incarnation belongs to."""
    return process.rpartition("#")[0]


def parse_process(process: str) -> ProcessId:
    """An incarnation, from its text."""
    name, _, incarnation = process.rpartition("#")
    return ProcessId(name, int(incarnation))


def view_of(row: Row) -> ViewKey:
    """The view that a row is about."""
    return row.view, row.coordinator


def view_name(view: ViewKey) -> str:
    """A view as `ViewId` writes it."""
    return f"{view[0]}@{view[1]}"


def urgency_of(row: Row) -> int:
    """The level by which the messages of a row leave a queue."""
    return HIGHEST if row.priorities else row.level


def is_addressed_to(to: str, name: str) -> bool:
    """Whether a message with these recipients, as a row has them, is for the process of this name."""
    return not to or name in to.split(",")


def view_event(row: Row) -> ViewEvent:
    """The group event of a row of the kind `view`."""
    return ViewEvent(
        process_of(row),
        view_of(row),
        tuple(row.peer.split(",")),
        row.position,
        sender_of(row) if row.sender else "",
        row.order,
        parse_reason(row.packet),
        row.time_ns,
    )


def departure_event(row: Row) -> DepartureEvent:
    """The group event of a row of the kind `stopped`."""
    voluntary = not row.packet.startswith(_EVICTED_PREFIX)
    return DepartureEvent(process_of(row), voluntary, parse_reason(row.packet.removeprefix(_EVICTED_PREFIX)))


def state_event(row: Row) -> StateEvent:
    """The group event of a row of the kind `state`."""
    return StateEvent(process_of(row), row.position)


_EVICTED = re.compile(r"was evicted \((slow|overflow|fault)\)")


def parse_reason(text: str) -> ViewReason:
    """A view reason, from the text that a row has of it."""
    founded, order = False, ""
    named: dict[str, list[str]] = {"joined": [], "left": [], "failed": [], "merged": []}
    evicted: list[Eviction] = []
    for part in text.split("; "):
        name, _, what = part.partition(" ")
        if part == "the group was founded":
            founded = True
        elif part.startswith(_ORDER_CHANGES):
            order = part.rpartition(" ")[2]
        elif what in named:
            named[what].append(name)
        elif cause := _EVICTED.match(what):
            evicted.append(Eviction(name, cast("EvictionCause", cause[1])))
    names = {what: tuple(members) for what, members in named.items()}
    return ViewReason(founded=founded, evicted=tuple(evicted), order=order, **names)
