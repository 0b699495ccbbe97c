"""What the rows of a run say, told for the oracle: message by message, process by process.

It shares no code with the pipeline; both read the same rows.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from pipeline.sample_runs import SampleRun
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, STATE, STOPPED, VIEW, Row

Value = TypeVar("Value", tuple[str, ...], int, str)
View = tuple[int, str]


class Place(NamedTuple):
    """Where a violation is."""

    view: str
    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]


class Event(NamedTuple):
    """One thing that happened to one message."""

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
class Story:
    """A run, with what its rows come to."""

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
            for row in self.run.rows
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

    def rows(self, kind: str) -> list[Row]:
        return sorted((row for row in self.run.rows if row.event == kind), key=lambda row: row.step)

    @cached_property
    def processes(self) -> list[str]:
        return sorted({process_of(row) for row in self.run.rows})

    @cached_property
    def told(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {process: [] for process in self.processes}
        for row in self.rows(VIEW):
            found[process_of(row)].append(row)
        return found

    def views_of(self, process: str) -> list[View]:
        return [(row.view, row.coordinator) for row in self.told.get(process, [])]

    @cached_property
    def views(self) -> list[View]:
        return sorted({view for process in self.processes for view in self.views_of(process)})

    @cached_property
    def _tellings(self) -> dict[View, list[Row]]:
        found = defaultdict(list)
        for row in self.rows(VIEW):
            found[row.view, row.coordinator].append(row)
        return found

    @cached_property
    def _members(self) -> dict[View, tuple[str, ...]]:
        return {
            view: most([tuple(row.peer.split(",")) for row in rows]) for view, rows in self._tellings.items()
        }

    def members(self, view: View) -> tuple[str, ...]:
        return self._members[view]

    def first_position(self, view: View) -> int:
        return most([row.position for row in self._tellings[view]])

    def orderer(self, view: View) -> str:
        return most([orderer_of(row) for row in self._tellings[view]])

    def reason(self, view: View) -> str:
        return most([row.packet for row in self._tellings[view]])

    def order(self, view: View) -> dict[str, Any]:
        """How a view is ordered."""
        found: dict[str, Any] = json.loads(most([row.order for row in self._tellings[view]]))
        return found

    def next_of(self, process: str, view: View) -> View | None:
        """The view that a process went on to."""
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
    def stopped(self) -> dict[str, str]:
        return {process_of(row): row.packet for row in reversed(self.rows(STOPPED))}

    def way_on(self, process: str, view: View) -> object:
        """Who have the same one went on together; None for those who fell out."""
        if self.is_final(view):
            return None if process in self.stopped else "stayed"
        return self.next_of(process, view)

    @cached_property
    def states(self) -> dict[str, list[Row]]:
        found = defaultdict(list)
        for row in self.rows(STATE):
            found[process_of(row)].append(row)
        return found

    def is_for(self, message: str, process: str, position: int) -> bool:
        """Whether a process has to do with a message: it is addressed, and no state holds it."""
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
        """The last position at which a process delivered in a view."""
        return self._last.get((process, view), -1)

    @cached_property
    def lost(self) -> set[str]:
        """Processes whose record may lack its end."""
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
            if any(self.way_on(member, view) is not None for member in self.members(view))
        }

    def fell_out(self, process: str, view: View) -> bool:
        """Whether a process did not go on from a view while others did, or stayed."""
        return self.way_on(process, view) is None and view in self._survived

    def binds(self, message: str, view: View) -> bool:
        """Whether a delivery in a view binds others: not that of an agreed message by those who fell out."""
        return any(
            event.safe
            or self.run.manifest.policy != "primary"
            or view not in self.views
            or event.process not in self.members(view)
            or not self.fell_out(event.process, view)
            for event in self.by_message[message]
            if event.view == view
        )

    @cached_property
    def special(self) -> set[str]:
        """Messages that were not for all, or on behalf of a client."""
        named = {event.message for event in self.events if event.to}
        return named | {
            id_of(row, index) for row in self.rows(BROADCAST) for index in range(row.count) if row.packet
        }

    @cached_property
    def without_place(self) -> set[str]:
        """Messages that need not be in the order: special and delivered by nobody, or binding nobody."""
        return {message for message in self.special if message in self.broadcasts} - set(self.by_message) | {
            message
            for message, events in self.by_message.items()
            if not any(self.binds(message, event.view) for event in events)
        }

    def placed(self, messages: set[str]) -> set[tuple[View, int]]:
        """The places that packets give to messages."""
        return {
            (event.view, event.position)
            for event in self.of(SENT, RECEIVED)
            if event.message in messages and event.position >= 0
        }


def most(values: list[Value]) -> Value:
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value))


def process_of(row: Row) -> str:
    return f"{row.member}#{row.incarnation}"


def orderer_of(row: Row) -> str:
    return f"{row.sender}#{row.sender_incarnation}" if row.sender else ""


def id_of(row: Row, index: int = 0) -> str:
    return f"{row.sender}#{row.sender_incarnation}/{row.level}/{row.first + index}"


def name_of(view: View) -> str:
    return f"{view[0]}@{view[1]}"
