"""The facts of a trace for the oracle: message by message, process by process.

It shares no code with the pipeline; both read the same rows.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from pipeline.sample_runs import SampleRun
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

Value = TypeVar("Value")
View = tuple[int, str]
Reason = tuple[object, ...]


class Order(NamedTuple):
    """How a view is ordered."""

    order: str
    policy: str
    priorities_act: str
    sends_by_priority: bool


class Place(NamedTuple):
    """Where a violation is, and who is involved."""

    view: str
    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]


class Event(NamedTuple):
    """One event of one message."""

    kind: str
    process: str
    step: int
    view: View
    message: str
    stream: tuple[str, int]
    number: int
    level: int
    urgency: int
    is_carried: bool
    safe: bool
    to: str
    time_ns: int
    position: int


@dataclass(frozen=True)
class TraceFacts:
    """A run, with what follows from its rows."""

    run: SampleRun

    @cached_property
    def events(self) -> list[Event]:
        all_safe = self.run.manifest.delivery == "safe"
        return [
            Event(
                row.event,
                process_of(row),
                row.step,
                (row.view, row.coordinator),
                id_of(row, index),
                (f"{row.sender}#{row.sender_incarnation}", row.level),
                row.first + index,
                row.level,
                255 if row.priorities else row.level,
                row.bytes > 0,
                row.safe or all_safe,
                row.to,
                row.time_ns,
                row.position if row.position < 0 else row.position + index,
            )
            for row in self.run.messages
            for index in range(row.count)
        ]

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @cached_property
    def deliveries(self) -> list[Event]:
        return self.of(DELIVERED)

    @cached_property
    def by_message(self) -> dict[str, list[Event]]:
        """The deliveries of each message that was delivered."""
        found = defaultdict(list)
        for event in self.deliveries:
            found[event.message].append(event)
        return found

    @cached_property
    def broadcasts(self) -> dict[str, Event]:
        return {event.message: event for event in self.of(BROADCAST)}

    def rows(self, kind: str) -> list[MessageRow]:
        return sorted((row for row in self.run.messages if row.event == kind), key=lambda row: row.step)

    def group_events(self, kind: str) -> list[GroupEventRow]:
        return sorted((row for row in self.run.group_events if row.event == kind), key=lambda row: row.step)

    @cached_property
    def processes(self) -> list[str]:
        return sorted({process_of(row) for row in self.run.rows})

    @cached_property
    def received(self) -> dict[str, list[GroupEventRow]]:
        found: dict[str, list[GroupEventRow]] = {process: [] for process in self.processes}
        for row in self.group_events(VIEW):
            found[process_of(row)].append(row)
        return found

    def views_of(self, process: str) -> list[View]:
        return [(row.view, row.coordinator) for row in self.received.get(process, [])]

    @cached_property
    def views(self) -> list[View]:
        return sorted({view for process in self.processes for view in self.views_of(process)})

    @cached_property
    def _by_view(self) -> dict[View, list[GroupEventRow]]:
        found = defaultdict(list)
        for row in self.group_events(VIEW):
            found[row.view, row.coordinator].append(row)
        return found

    @cached_property
    def _members(self) -> dict[View, tuple[str, ...]]:
        return {view: most_common([row.members for row in rows]) for view, rows in self._by_view.items()}

    def members(self, view: View) -> tuple[str, ...]:
        return self._members[view]

    def first_position(self, view: View) -> int:
        return most_common([row.position for row in self._by_view[view]])

    def orderer(self, view: View) -> str:
        return most_common([row.orderer for row in self._by_view[view]])

    def reason(self, view: View) -> Reason:
        return most_common([reason_of(row) for row in self._by_view[view]])

    def order(self, view: View) -> Order:
        """How a view is ordered."""
        return most_common([order_of(row) for row in self._by_view[view]])

    def next_of(self, process: str, view: View) -> View | None:
        """The view that a process continued to."""
        views = self.views_of(process)
        if view not in views[:-1]:
            return None
        return views[views.index(view) + 1]

    @cached_property
    def _final(self) -> set[View]:
        left = {view for process in self.processes for view in self.views_of(process)[:-1]}
        return set(self.views) - left

    def is_final(self, view: View) -> bool:
        return view in self._final

    @cached_property
    def stopped(self) -> dict[str, tuple[bool, Reason]]:
        return {
            process_of(row): (row.voluntary, reason_of(row)) for row in reversed(self.group_events(STOPPED))
        }

    def continuation(self, process: str, view: View) -> object:
        """Members with the same value continued together; None for those that dropped out."""
        if self.is_final(view):
            return None if process in self.stopped else "remained"
        return self.next_of(process, view)

    @cached_property
    def states(self) -> dict[str, list[GroupEventRow]]:
        found = defaultdict(list)
        for row in self.group_events(STATE):
            found[process_of(row)].append(row)
        return found

    def is_for(self, message: str, process: str, position: int) -> bool:
        """Whether a process owes a message: it is a recipient, and no state covers it."""
        return self.is_addressed(message, process) and position >= max(
            (row.position for row in self.states.get(process, [])), default=0
        )

    def is_addressed(self, message: str, process: str) -> bool:
        asked = self.broadcasts.get(message) or max(self.by_message[message], key=lambda event: event.to)
        return asked.to == "" or process.partition("#")[0] in asked.to.split(",")

    @cached_property
    def _last(self) -> dict[tuple[str, View], int]:
        last: dict[tuple[str, View], int] = {}
        for event in self.deliveries:
            place = event.process, event.view
            last[place] = max(last.get(place, -1), event.position)
        return last

    def last_in(self, process: str, view: View) -> int:
        """The last position at which a process delivered in a view, before it diverged."""
        last = self._last.get((process, view), -1)
        return min(last, self._diverged_at.get((process, view), last + 1) - 1)

    @cached_property
    def truncated(self) -> set[str]:
        """Processes whose record may lack the last rows."""
        if self.run.manifest.clock == "virtual":
            return set()
        known = {member for view in self.views for member in self.members(view)} | set(self.processes)
        return {
            process
            for process in known
            if process not in self.stopped
            and not any(self.is_final(view) and process in self.members(view) for view in self.views)
        }

    @cached_property
    def _survived(self) -> set[View]:
        return {
            view
            for view in self.views
            if any(self.continuation(member, view) is not None for member in self.members(view))
        }

    def dropped_out(self, process: str, view: View) -> bool:
        """Whether a process did not continue from a view while others continued or remained."""
        return self.continuation(process, view) is None and view in self._survived

    def diverged(self, event: Event) -> bool:
        """Whether a member that dropped out of a view that re-orders had delivered something alone before.

        Safe messages are not concerned.
        """
        diverged_at = self._diverged_at.get((event.process, event.view), event.position + 1)
        return event.position >= diverged_at and not event.safe

    @cached_property
    def _diverged_at(self) -> dict[tuple[str, View], int]:
        found: dict[tuple[str, View], int] = {}
        for event in self.deliveries:
            is_known = event.view in self.views and event.process in self.members(event.view)
            if (
                is_known
                and self.order(event.view).priorities_act == "consuming"
                and not self.binds(event.message, event.view)
            ):
                key = event.process, event.view
                found[key] = min(event.position, found.get(key, event.position))
        return found

    def binds(self, message: str, view: View) -> bool:
        """Whether a delivery is binding: not that of an agreed message by members that dropped out."""
        return any(
            event.safe
            or self.run.manifest.policy != "primary"
            or view not in self.views
            or event.process not in self.members(view)
            or not self.dropped_out(event.process, view)
            for event in self.by_message[message]
            if event.view == view
        )

    @cached_property
    def special(self) -> set[str]:
        """Messages that were not for all, or on behalf of a client."""
        named = {event.message for event in self.events if event.to}
        return named | {
            id_of(row, index) for row in self.rows(BROADCAST) for index in range(row.count) if row.client
        }

    @cached_property
    def without_position(self) -> set[str]:
        """Messages that need no position: special ones that nobody delivered, and nonbinding ones."""
        return {message for message in self.special if message in self.broadcasts} - set(self.by_message) | {
            message
            for message, events in self.by_message.items()
            if not any(self.binds(message, event.view) for event in events)
        }

    def positions(self, messages: set[str]) -> set[tuple[View, int]]:
        """The positions that packets assign to messages."""
        return {
            (event.view, event.position)
            for event in self.of(SENT, RECEIVED)
            if event.message in messages and event.position >= 0
        }


def most_common(values: list[Value]) -> Value:
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value))


def process_of(row: TraceRow) -> str:
    return f"{row.member}#{row.incarnation}"


def sender_of(row: MessageRow) -> str:
    return f"{row.sender}#{row.sender_incarnation}"


def reason_of(row: GroupEventRow) -> Reason:
    return row.founded, row.joined, row.left, row.failed, row.evicted, row.merged, row.order_change


def order_of(row: GroupEventRow) -> Order:
    return Order(row.order, row.starvation, row.priorities_act, row.sends_by_priority)


def id_of(row: MessageRow, index: int = 0) -> str:
    return f"{row.sender}#{row.sender_incarnation}/{row.level}/{row.first + index}"


def name_of(view: View) -> str:
    return f"{view[0]}@{view[1]}"
