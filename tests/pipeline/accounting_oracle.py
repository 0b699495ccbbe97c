"""What the check of Priority accounting must find: every pair of messages, every member of the view."""

from collections import Counter
from collections.abc import Iterable, Iterator

from pipeline.trace_facts import Event, Place, TraceFacts, View, name_of
from priocast.trace.schema import DELIVERED, RECEIVED


def expected_places(facts: TraceFacts, agreed: Iterable[Event]) -> Iterator[Place]:
    """Every message that is too early or too late, with the nearest less urgent one that shows it."""
    in_order = sorted(agreed, key=lambda event: (event.position, event.message))
    urgency = _urgencies(facts)
    for view in facts.views:
        order = facts.order(view)
        if order.priorities_act != "consuming" or order.policy == "fifo":
            continue
        here = [event for event in in_order if event.view == view]
        members = [_Member(facts, view, member, here) for member in facts.members(view)]
        for high in here:
            lower = [low for low in here if urgency[low.message] < urgency[high.message]]
            place = _too_early(high, lower, members) or _too_late(high, lower, members)
            if place:
                yield place._replace(view=name_of(view))


def _urgencies(facts: TraceFacts) -> Counter[str]:
    """The highest urgency in any row: a message of a plain view stays first."""
    found = Counter[str]()
    for event in facts.events:
        found[event.message] = max(found[event.message], event.urgency)
    return found


def _too_early(high: Event, lower: list[Event], members: list["_Member"]) -> Place | None:
    """It arrived when a member had passed its position, and possibly less urgent messages after it."""
    had = [member for member in members if member.had_passed(high, high)]
    if not had:
        return None
    passed = [
        low.message
        for low in lower
        if low.position > high.position and any(member.had_passed(low, high) for member in members)
    ]
    farthest = max(had, key=lambda member: (member.reached(high), member.process))
    return Place("", high.position, (high.message, *passed[:1]), (farthest.process,))


def _too_late(high: Event, lower: list[Event], members: list["_Member"]) -> Place | None:
    """Less urgent messages are before it that no member can have consumed when it arrived."""
    unjustified = [
        low
        for low in lower
        if low.position < high.position and not any(member.may_have_passed(low, high) for member in members)
    ]
    if not unjustified:
        return None
    last = max(low.position for low in unjustified)
    named = min(low.message for low in unjustified if low.position == last)
    everybody = tuple(sorted(member.process for member in members))
    return Place("", high.position, (high.message, named), everybody)


class _Member:
    """One member in one view: what arrived at it and what it delivered, and when."""

    def __init__(self, facts: TraceFacts, view: View, process: str, agreed: list[Event]) -> None:
        own = [event for event in facts.events if (event.process, event.view) == (process, view)]
        self.process = process
        self._facts = facts
        self._view = view
        self._came = {event.message: event for event in own if event.kind == RECEIVED and event.is_carried}
        self._own = [event for event in own if event.kind == DELIVERED]
        self._delivered = self._own
        if facts.dropped_out(process, view):
            places = {event.message: event.position for event in agreed}
            self._delivered = [
                event._replace(position=places[event.message])
                for event in self._own
                if event.message in places
            ]

    def reached(self, high: Event) -> int:
        """The last position that it had certainly consumed when a message arrived."""
        if high.message not in self._came:
            truncated = self.process in self._facts.truncated
            return -1 if truncated else max((event.position for event in self._own), default=-1)
        came = self._came[high.message].step
        return max((event.position for event in self._delivered if event.step < came), default=-1)

    def had_passed(self, low: Event, high: Event) -> bool:
        return self.reached(high) >= low.position

    def may_have_passed(self, low: Event, high: Event) -> bool:
        """It had passed it, or may have consumed it without a record."""
        if self.had_passed(low, high):
            return True
        if high.message not in self._came:
            return self.process in self._facts.truncated
        came = self._came[high.message].step
        if self._ended_without_a_state():
            return True
        state = self._facts.states.get(self.process, [])[-1:]
        for row in state:
            kept = [event for event in self._came.values() if event.step < row.step]
            known = max(row.position, self._facts.first_position(self._view) + len(kept))
            if came < row.step or low.position < known:
                return True
        if any(event.to for event in self._facts.events):
            upcoming = [event.position for event in self._delivered if event.step > came]
            return not upcoming or low.position < min(upcoming)
        return False

    def _ended_without_a_state(self) -> bool:
        """It joined, and its application delivered nothing; what it kept is not recorded."""
        delivered = any(
            event.process == self.process for event in self._facts.events if event.kind == DELIVERED
        )
        return not delivered and self._view[0] > 1 and self._facts.dropped_out(self.process, self._view)
