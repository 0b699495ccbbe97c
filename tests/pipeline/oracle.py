"""What the checks must find, computed in the simplest way: message by message, pair by pair.

Slow, and without any of the ideas that the Spark checks use; both read the same rows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import cast

from pipeline import accounting_oracle, priority_oracle, view_oracle
from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import Event, Place, TraceFacts, View, id_of, name_of, process_of
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, MessageRow


def expected_places(run: SampleRun) -> dict[str, list[Place]]:
    """Every violation of every guarantee, by guarantee."""
    facts = TraceFacts(run)
    return {
        "Integrity": [
            *repeated(facts),
            *never_broadcast(facts),
            *broadcast_again(facts),
            *outsiders(facts),
            *not_addressed(facts),
            *covered_by_state(facts),
        ],
        "Total order": [
            *conflicts(facts),
            *empty_positions(facts),
            *steps_back(facts),
            *several_positions(facts),
        ],
        "Agreement": list(disagreements(facts)),
        "View synchrony": list(view_oracle.expected_places(facts)),
        "Uniformity": [*not_everywhere(facts), *not_received(facts)],
        "FIFO among equals": list(out_of_fifo(facts)),
        "Causal order": list(acausal(facts)),
        "Priority": [*priority_oracle.overtaken(facts), *priority_oracle.not_in_queue(facts)],
        "Priority accounting": list(accounting_oracle.expected_places(facts, _agreed(facts))),
    }


def orders_differ(run: SampleRun) -> bool:
    """Total order as it is defined: whether two processes deliver two messages in different orders."""
    sequences = defaultdict(list)
    facts = TraceFacts(run)
    for event in sorted(facts.deliveries, key=lambda event: (event.step, event.position)):
        if facts.binds(event.message, event.view) and not facts.diverged(event):
            sequences[event.process].append(event.message)
    for one, other in combinations(sequences.values(), 2):
        shared = set(one) & set(other)
        if [message for message in one if message in shared] != [
            message for message in other if message in shared
        ]:
            return True
    return False


# Integrity


def repeated(facts: TraceFacts) -> Iterator[Place]:
    at = defaultdict(list)
    for event in facts.deliveries:
        at[event.message, event.process].append(event)
    for (message, process), events in at.items():
        if len(events) > 1:
            view = max((event.view, event.position) for event in events)[0]
            yield Place(name_of(view), max(event.position for event in events), (message,), (process,))


def never_broadcast(facts: TraceFacts) -> Iterator[Place]:
    for message, events in facts.by_message.items():
        first = events[0]
        known = [event.number for event in facts.of(BROADCAST) if event.stream == first.stream]
        is_cut = first.stream[0] in facts.truncated and first.number > max(known, default=-1)
        if message not in facts.broadcasts and not is_cut:
            yield Place(
                name_of(min(event.view for event in events)),
                min(event.position for event in events),
                (message,),
                _processes(events),
            )


def broadcast_again(facts: TraceFacts) -> Iterator[Place]:
    for message, times in Counter(event.message for event in facts.of(BROADCAST)).items():
        if times > 1:
            yield Place("", None, (message,), (message.partition("/")[0],))


def outsiders(facts: TraceFacts) -> Iterator[Place]:
    for view in {event.view for event in facts.deliveries}:
        members = facts.members(view) if view in facts.views else ()
        for process in {event.process for event in facts.deliveries if event.view == view} - set(members):
            positions = [
                event.position for event in facts.deliveries if (event.view, event.process) == (view, process)
            ]
            yield Place(name_of(view), min(positions), (), (process,))


def not_addressed(facts: TraceFacts) -> Iterator[Place]:
    for event in facts.deliveries:
        if not facts.is_addressed(event.message, event.process):
            yield Place(name_of(event.view), event.position, (event.message,), (event.process,))


def covered_by_state(facts: TraceFacts) -> Iterator[Place]:
    for row in facts.rows(DELIVERED):
        for state in facts.states.get(process_of(row), []):
            covered = row.step > state.step and row.position < state.position
            replaced = row.step < state.step and row.position + row.count > state.position
            if covered or replaced:
                yield _of_row(row)


# Total order


def conflicts(facts: TraceFacts) -> Iterator[Place]:
    at = defaultdict(list)
    for event in facts.deliveries:
        if not facts.diverged(event):
            at[event.view, event.position].append(event)
    for (view, position), events in at.items():
        messages = tuple(sorted({event.message for event in events}))
        if len(messages) > 1:
            yield Place(name_of(view), position, messages, _processes(events))


def empty_positions(facts: TraceFacts) -> Iterator[Place]:
    passed_over = facts.without_position & facts.special
    explained = facts.positions(passed_over)
    for view in facts.views:
        if not _is_gapless(facts, view) or (passed_over and not facts.orderer(view)):
            continue
        due = facts.first_position(view)
        for position in sorted({event.position for event in facts.deliveries if event.view == view}):
            if any((view, empty) not in explained for empty in range(due, position)):
                yield Place(name_of(view), due, (), ())
            due = max(due, position + 1)
        if any((view, empty) not in explained for empty in range(due, _end(facts, view))):
            yield Place(name_of(view), due, (), ())


def _end(facts: TraceFacts, view: View) -> int:
    """The position after the last one of a view, as far as it is known without deliveries."""
    if facts.is_final(view):
        remained = [member for member in facts.members(view) if facts.continuation(member, view)]
        packets = [event for event in facts.of(SENT, RECEIVED) if event.view == view]
        known = [event.position + 1 for event in packets if event.process in remained]
        is_known = facts.run.manifest.clock == "virtual" and "/" not in facts.order(view).order
        return max(known, default=0) if is_known else 0
    following = _following(facts, view)
    return facts.first_position(following) if following else 0


def _following(facts: TraceFacts, view: View) -> View | None:
    """The only view that members of this one continued to, in a primary group."""
    following = {facts.next_of(member, view) for member in facts.members(view)} - {None}
    return following.pop() if len(following) == 1 and facts.run.manifest.policy == "primary" else None


def _is_gapless(facts: TraceFacts, view: View) -> bool:
    """Whether no position can be empty because the only members that knew its message dropped out.

    A member that left told the others what it knew.
    """
    following = _following(facts, view)
    left = cast("tuple[str, ...]", facts.reason(following)[2]) if following else ()
    ways = [
        following if member.partition("#")[0] in left else facts.continuation(member, view)
        for member in facts.members(view)
    ]
    together = None not in ways and len(set(ways)) == 1
    orderer_is_there = facts.orderer(view) in facts.members(view) and (
        facts.continuation(facts.orderer(view), view) is not None
    )
    return facts.is_final(view) or together or (orderer_is_there and facts.run.manifest.policy == "primary")


def steps_back(facts: TraceFacts) -> Iterator[Place]:
    reached: dict[str, int] = {}
    for row in facts.rows(DELIVERED):
        process = process_of(row)
        if row.position <= reached.get(process, -1):
            yield _of_row(row)
        reached[process] = max(reached.get(process, -1), row.position + row.count - 1)


def several_positions(facts: TraceFacts) -> Iterator[Place]:
    for message in facts.by_message:
        events = _binding(facts, message)
        places = {(event.view, event.position) for event in events}
        if len(places) > 1:
            view, position = min(places)
            yield Place(name_of(view), position, (message,), _processes(events))


# Agreement and Uniformity


def disagreements(facts: TraceFacts) -> Iterator[Place]:
    for message, view, delivered in _in_views(facts):
        events = [event for event in delivered if not facts.diverged(event)]
        if not events:
            continue
        have = {event.process for event in events}
        position = min(event.position for event in events)
        ways = {member: facts.continuation(member, view) for member in facts.members(view)}
        due = [member for member in ways if facts.is_for(message, member, position)]
        missing = {
            member
            for member, other in product(due, ways)
            if ways[member] is not None
            and ways[member] == ways[other]
            and other in have
            and member not in have
        }
        on = [member for member in due if ways[member] is not None]
        has_continued = any(ways[member] is not None for member in have & set(ways))
        if set(on) <= have and (has_continued or facts.is_final(view)):
            missing |= {
                member
                for member in due
                if ways[member] is None and member not in have and position <= facts.last_in(member, view)
            }
        if missing:
            yield Place(name_of(view), position, (message,), tuple(sorted(missing)))


def not_everywhere(facts: TraceFacts) -> Iterator[Place]:
    """A safe message that one process delivered, and that others that continued lack."""
    for message, view, events in _in_views(facts):
        have = {event.process for event in events}
        position = min(event.position for event in events)
        continuations = {facts.continuation(process, view) for process in have & set(facts.members(view))}
        missing = [
            member
            for member in facts.members(view)
            if _is_safe(facts, message)
            and facts.is_for(message, member, position)
            and facts.continuation(member, view) is not None
            and member not in have
            and (facts.run.manifest.policy == "primary" or facts.continuation(member, view) in continuations)
        ]
        if missing:
            yield Place(name_of(view), position, (message,), tuple(sorted(missing)))


def not_received(facts: TraceFacts) -> Iterator[Place]:
    """A safe message that was delivered during a view, and that some of its members did not receive."""
    for message, view, events in _in_views(facts):
        members = facts.members(view)
        inside = [event for event in events if event.process in members]
        if not _is_safe(facts, message) or not any(_during_view(facts, event) for event in inside):
            continue
        packets = [
            event
            for event in facts.of(BROADCAST, SENT, RECEIVED)
            if (event.message, event.view) == (message, view)
        ]
        carriers = {event.process for event in packets if event.is_carried}
        placed = [event for event in packets if event.position >= 0]
        if any(event.kind == SENT and event.process in members for event in placed):
            carriers &= {event.process for event in placed}
        lacking = [
            member
            for member in members
            if facts.is_addressed(message, member)
            and not (member in facts.truncated and facts.continuation(member, view) is None)
            and member not in carriers
        ]
        if lacking:
            position = min(event.position for event in inside)
            yield Place(name_of(view), position, (message,), tuple(sorted(lacking)))


def _during_view(facts: TraceFacts, delivery: Event) -> bool:
    """Whether a delivery was certainly made before its view ended."""
    return facts.is_final(delivery.view) or any(
        event.step > delivery.step
        for event in facts.of(BROADCAST, SENT, RECEIVED)
        if (event.process, event.view) == (delivery.process, delivery.view)
    )


def _is_safe(facts: TraceFacts, message: str) -> bool:
    return any(event.safe for event in facts.by_message[message])


# FIFO among equals


def out_of_fifo(facts: TraceFacts) -> Iterator[Place]:
    due = Counter[tuple[str, int]]()
    last_view: dict[tuple[str, int], View] = {}
    for event in sorted(_agreed(facts), key=lambda event: (event.view[0], event.position, event.number)):
        sender = event.stream[0]
        began_in = next(iter(facts.views_of(sender)), None)
        skipped = [f"{sender}/{event.level}/{number}" for number in range(due[event.stream], event.number)]
        excused = event.number >= due[event.stream] and all(
            message in facts.without_position for message in skipped
        )
        changed = (
            facts.run.manifest.policy != "primary"
            and event.number > due[event.stream]
            and began_in is not None
            and last_view.get(event.stream, began_in) != event.view
        )
        if event.number != due[event.stream] and not excused and not changed:
            view = name_of(event.view) if event.view in facts.views else ""
            yield Place(view, event.position, (event.message,), (sender,))
        due[event.stream] = max(due[event.stream], event.number + 1)
        last_view[event.stream] = event.view


# Causal order


def acausal(facts: TraceFacts) -> Iterator[Place]:
    """Messages that their sender delivers before their broadcast, or that precede what it had delivered."""
    agreed = {event.message: event for event in _agreed(facts)}
    first: dict[str, Event] = {}
    for event in facts.of(BROADCAST):
        if event.process == event.stream[0]:
            first[event.message] = min(event, first.get(event.message, event), key=lambda each: each.step)
    for message, broadcast in first.items():
        sender = broadcast.process
        own = [event for event in facts.by_message.get(message, []) if event.process == sender]
        if own:
            delivery = min(own, key=lambda each: each.step)
            if delivery.step < broadcast.step:
                yield Place(name_of(delivery.view), delivery.position, (message,), (sender,))
        elif message in agreed and agreed[message].view in facts.views:
            passed = [
                event.position
                for event in facts.deliveries
                if event.process == sender and event.step < broadcast.step and _counts(facts, event)
            ]
            if agreed[message].position <= max(passed, default=-1):
                yield Place(name_of(agreed[message].view), agreed[message].position, (message,), (sender,))


def _counts(facts: TraceFacts, delivery: Event) -> bool:
    """Whether a process delivered it in a view of its own that it did not drop out of, in a primary group."""
    if delivery.view not in facts.views or delivery.process not in facts.members(delivery.view):
        return False
    is_primary = facts.run.manifest.policy == "primary"
    return not is_primary or not facts.dropped_out(delivery.process, delivery.view)


def _agreed(facts: TraceFacts) -> list[Event]:
    """Every message once, at the position where most delivered it."""
    agreed = []
    for message in facts.by_message:
        events = _binding(facts, message)
        if not events:
            continue
        votes = Counter((event.view, event.position) for event in events)
        best = max(votes, key=lambda place: (votes[place], -place[0][0], -place[1], place[0][1]))
        agreed.append(next(event for event in events if (event.view, event.position) == best))
    return agreed


def _binding(facts: TraceFacts, message: str) -> list[Event]:
    """The deliveries of a message that bind others."""
    return [
        event
        for event in facts.by_message[message]
        if facts.binds(message, event.view) and not facts.diverged(event)
    ]


def _in_views(facts: TraceFacts) -> Iterator[tuple[str, View, list[Event]]]:
    """The deliveries of each message in each known view."""
    for message, events in facts.by_message.items():
        for view in {event.view for event in events} & set(facts.views):
            yield message, view, [event for event in events if event.view == view]


def _processes(events: Iterable[Event]) -> tuple[str, ...]:
    return tuple(sorted({event.process for event in events}))


def _of_row(row: MessageRow) -> Place:
    return Place(f"{row.view}@{row.coordinator}", row.position, (id_of(row),), (process_of(row),))
