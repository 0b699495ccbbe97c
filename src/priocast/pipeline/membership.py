"""Which members continued together: the views of a run, and which positions each member owes in each.

Members of a view that received the same next view *continued together*. If nobody continued from a view, it
is a *final* view, and its members *remained* in it, except those that recorded that they stopped. A member
that neither continued nor remained *dropped out*: it crashed, left or was evicted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import msgspec

from priocast.core.view_reason import ViewReason
from priocast.pipeline.process_history import ReceivedView, RecordedProcess, TraceHistory
from priocast.trace.schema import ViewName, ViewOrder

Value = TypeVar("Value")

REMAINED = "remained"
DROPPED_OUT = ""
_SEQUENCING = "sequencing"
_CONSUMING = "consuming"


@dataclass(frozen=True)
class Participation:
    """One member in one view: the view that it continued to, and the positions that it owes.

    Members that continued or remained together owe each other everything up to the last position that one of
    them delivered. A member that dropped out owes nothing after its own last position. A state that a member
    received covers the positions before it.
    """

    process: str
    next_view: str
    owes_from: int
    owes_until: int

    @property
    def name(self) -> str:
        return name_of(self.process)

    @property
    def dropped_out(self) -> bool:
        return self.next_view == DROPPED_OUT


@dataclass(frozen=True)
class GroupView:
    """A view as most of its members recorded it.

    `gapless` says that every position of the view must have been delivered by some process. A position may
    stay empty if only members that dropped out knew its message or, in a partitioned group, if the sender
    is on the other side. That is impossible if nobody continued at all, if all continued together, or if in a
    primary group the orderer continued, or all that did not continue left, and told the others what they
    knew. `end_position` is the position after the last one, as far as it is known without deliveries: in a
    primary group, the first one of the next view; in a final view, the one after the last in any packet of a
    member that remained.
    """

    name: ViewName
    members: tuple[str, ...]
    orderer: str
    order: ViewOrder
    first_position: int
    end_position: int
    reason: ViewReason
    participations: tuple[Participation, ...]
    final: bool
    gapless: bool

    @property
    def survived(self) -> bool:
        """Whether any member continued or remained; if none did, its deliveries are binding nevertheless."""
        return not all(each.dropped_out for each in self.participations)

    @property
    def orders_by_priority(self) -> bool:
        """Whether one member orders, and messages leave its queue by their sort key."""
        by_key = self.order.priorities_act == _SEQUENCING and not self.order.is_plain
        return by_key and self.orderer != ""

    @property
    def sends_by_priority(self) -> bool:
        """Whether members send their own messages by their sort key."""
        return self.order.sends_by_priority and not self.order.is_plain

    @property
    def is_ordered_by_consumption(self) -> bool:
        """Whether a message has its position when it is consumed."""
        return self.order.priorities_act == _CONSUMING

    @property
    def consumes_by_priority(self) -> bool:
        """Whether urgent messages overtake others that wait to be consumed."""
        return self.is_ordered_by_consumption and not self.order.is_plain


@dataclass(frozen=True)
class DeliveryObligation:
    """The processes that must deliver what is addressed `to` a list, at positions from `start` until `end`.

    `binding` if one of them continued or remained, or nobody did at all; `complete` if every recipient that
    continued or remained is among them.
    """

    to: str
    start: int
    end: int
    processes: tuple[str, ...]
    binding: bool
    complete: bool


def reconstruct_views(history: TraceHistory, primary: bool) -> dict[ViewName, GroupView]:
    """The views of a run, by number."""
    events: dict[ViewName, list[ReceivedView]] = defaultdict(list)
    next_views: dict[ViewName, dict[str, ViewName]] = defaultdict(dict)
    for process in history.processes.values():
        for event in process.views:
            events[event.view].append(event)
        for event, after in process.transitions():
            next_views[event.view].setdefault(process.id, after.view)
    return {
        name: _view(name, events, next_views.get(name, {}), history.processes, primary)
        for name in sorted(events)
    }


def delivery_obligations(view: GroupView, recipient_lists: Iterable[str]) -> Iterator[DeliveryObligation]:
    """Who must deliver what: messages for all members, and those for each list of recipients."""
    for to in ("", *sorted(recipient_lists)):
        names = set(to.split(","))
        members = [each for each in view.participations if not to or each.name in names]
        bounds = sorted({0, *(bound for each in members for bound in (each.owes_from, each.owes_until))})
        for start, end in pairwise(bounds):
            due = [each for each in members if each.owes_from <= start and end <= each.owes_until]
            if due:
                others = [each for each in members if each not in due and each.owes_from <= start]
                yield DeliveryObligation(
                    to=to,
                    start=start,
                    end=end,
                    processes=tuple(each.process for each in due),
                    binding=not all(each.dropped_out for each in due) or not view.survived,
                    complete=all(each.dropped_out for each in others),
                )


def remaining_processes(views: Mapping[ViewName, GroupView]) -> set[str]:
    """The processes that were in the group at the end."""
    return {
        each.process for view in views.values() for each in view.participations if each.next_view == REMAINED
    }


def truncated_processes(history: TraceHistory, views: Mapping[ViewName, GroupView]) -> set[str]:
    """The processes that neither stopped nor remained: their records may lack the last rows."""
    known = {member for view in views.values() for member in view.members} | set(history.processes)
    stopped = {process.id for process in history.processes.values() if process.stop}
    return known - remaining_processes(views) - stopped


def name_of(process: str) -> str:
    """The member's name, which all of its incarnations share."""
    return process.rpartition("#")[0]


def most_common(values: Iterable[Value], key: Callable[[Value], Any] = lambda value: value) -> Value:
    """The most frequent value; of several, the greatest by `key`."""
    votes: Counter[Any] = Counter(values)
    value: Value = max(votes, key=lambda value: (votes[value], key(value)))
    return value


def _view(
    name: ViewName,
    all_events: Mapping[ViewName, list[ReceivedView]],
    next_views: Mapping[str, ViewName],
    processes: Mapping[str, RecordedProcess],
    primary: bool,
) -> GroupView:
    events = all_events[name]
    members = most_common(event.members for event in events)
    orderer = most_common(event.orderer for event in events)
    final = not next_views
    remained = {member for member in members if final and not _stopped(processes.get(member))}
    continued = {
        member: REMAINED if member in remained else str(next_views.get(member, DROPPED_OUT))
        for member in members
    }
    followed = {next_views[member] for member in members if member in next_views}
    following = all_events[followed.pop()] if primary and len(followed) == 1 else []
    left = _reason(following).left if following else ()
    ways = {next_view for member, next_view in continued.items() if name_of(member) not in left}
    together = DROPPED_OUT not in ways and len(ways) <= 1
    orderer_continued = primary and continued.get(orderer, DROPPED_OUT) != DROPPED_OUT
    return GroupView(
        name=name,
        members=members,
        orderer=orderer,
        order=most_common(event.order for event in events),
        first_position=_first_position(events),
        end_position=_first_position(following) if following else _ordered_until(name, remained, processes),
        reason=_reason(events),
        participations=tuple(_participations(name, continued, processes)),
        final=final,
        gapless=final or together or orderer_continued,
    )


def _first_position(events: list[ReceivedView]) -> int:
    return most_common(event.first_position for event in events)


def _reason(events: list[ReceivedView]) -> ViewReason:
    return most_common((event.reason for event in events), msgspec.to_builtins)


def _ordered_until(name: ViewName, remained: set[str], processes: Mapping[str, RecordedProcess]) -> int:
    known = (processes[member].ordered_until.get(name, 0) for member in remained if member in processes)
    return max(known, default=0)


def _participations(
    name: ViewName, continued: Mapping[str, str], processes: Mapping[str, RecordedProcess]
) -> Iterator[Participation]:
    ends: dict[str, int] = {}
    reached: dict[str, int] = defaultdict(int)
    for member, next_view in continued.items():
        span = processes[member].delivered.get(name) if member in processes else None
        ends[member] = span.position_last + 1 if span else 0
        reached[next_view] = max(reached[next_view], ends[member])
    for member, next_view in continued.items():
        owes_from = processes[member].owes_from if member in processes else 0
        owes_until = ends[member] if next_view == DROPPED_OUT else reached[next_view]
        yield Participation(member, next_view, owes_from, owes_until)


def _stopped(process: RecordedProcess | None) -> bool:
    return process is not None and process.stop is not None
