"""What the checks should find, said in the plainest way: every message by itself, every pair compared.

Slow, and without any idea that the Spark checks use; both read the same rows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations

from pipeline import oracle_of_accounting, oracle_of_views
from pipeline.sample_runs import SampleRun
from pipeline.story import Event, Place, Story, View, id_of, name_of, process_of
from priocast.core.starvation import parse_starvation
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, Row

Queue = tuple[dict[str, Event], dict[str, Event]]
"""What entered a queue, and what left it."""


def expected_places(run: SampleRun) -> dict[str, list[Place]]:
    """Every violation of every property, by property."""
    story = Story(run)
    return {
        "Integrity": [
            *repeated(story),
            *never_broadcast(story),
            *outsiders(story),
            *not_addressed(story),
            *in_the_state(story),
        ],
        "Total order": [*conflicts(story), *unfilled(story), *steps_back(story), *scattered(story)],
        "Agreement": list(disagreements(story)),
        "View synchrony": list(oracle_of_views.expected_places(story)),
        "Uniformity": [*not_everywhere(story), *not_held(story)],
        "FIFO among equals": list(out_of_fifo(story)),
        "Priority": [*wronged(story), *out_of_nowhere(story)],
        "Priority accounting": list(oracle_of_accounting.expected_places(story, _agreed(story))),
    }


def orders_differ(run: SampleRun) -> bool:
    """Total order as it is defined: whether two processes deliver two messages in different orders."""
    sequences = defaultdict(list)
    story = Story(run)
    for event in sorted(story.deliveries, key=lambda event: (event.step, event.position)):
        if story.binds(event.message, event.view):
            sequences[event.process].append(event.message)
    for one, other in combinations(sequences.values(), 2):
        shared = set(one) & set(other)
        if [message for message in one if message in shared] != [
            message for message in other if message in shared
        ]:
            return True
    return False


# Integrity


def repeated(story: Story) -> Iterator[Place]:
    at = defaultdict(list)
    for event in story.deliveries:
        at[event.message, event.process].append(event)
    for (message, process), events in at.items():
        if len(events) > 1:
            view = max((event.view, event.position) for event in events)[0]
            yield Place(name_of(view), max(event.position for event in events), (message,), (process,))


def never_broadcast(story: Story) -> Iterator[Place]:
    for message, events in story.by_message.items():
        first = events[0]
        known = [event.number for event in story.of(BROADCAST) if event.stream == first.stream]
        is_cut = first.stream[0] in story.lost and first.number > max(known, default=-1)
        if message not in story.broadcasts and not is_cut:
            yield Place(
                name_of(min(event.view for event in events)),
                min(event.position for event in events),
                (message,),
                _processes(events),
            )


def outsiders(story: Story) -> Iterator[Place]:
    for view in {event.view for event in story.deliveries}:
        members = story.members(view) if view in story.views else ()
        for process in {event.process for event in story.deliveries if event.view == view} - set(members):
            positions = [
                event.position for event in story.deliveries if (event.view, event.process) == (view, process)
            ]
            yield Place(name_of(view), min(positions), (), (process,))


def not_addressed(story: Story) -> Iterator[Place]:
    for event in story.deliveries:
        if not story.is_addressed(event.message, event.process):
            yield Place(name_of(event.view), event.position, (event.message,), (event.process,))


def in_the_state(story: Story) -> Iterator[Place]:
    for row in story.rows(DELIVERED):
        for state in story.states.get(process_of(row), []):
            held = row.step > state.step and row.position < state.position
            undone = row.step < state.step and row.position + row.count > state.position
            if held or undone:
                yield _of_row(row)


# Total order


def conflicts(story: Story) -> Iterator[Place]:
    at = defaultdict(list)
    for event in story.deliveries:
        at[event.view, event.position].append(event)
    for (view, position), events in at.items():
        messages = tuple(sorted({event.message for event in events}))
        if len(messages) > 1:
            yield Place(name_of(view), position, messages, _processes(events))


def unfilled(story: Story) -> Iterator[Place]:
    passed_over = story.without_place & story.special
    explained = story.placed(passed_over)
    for view in story.views:
        if not _is_gapless(story, view) or (passed_over and not story.orderer(view)):
            continue
        due = story.first_position(view)
        for position in sorted({event.position for event in story.deliveries if event.view == view}):
            if any((view, empty) not in explained for empty in range(due, position)):
                yield Place(name_of(view), due, (), ())
            due = max(due, position + 1)


def _is_gapless(story: Story, view: View) -> bool:
    """Whether nobody fell out who alone could know what belongs in a place."""
    ways = [story.way_on(member, view) for member in story.members(view)]
    together = None not in ways and len(set(ways)) == 1
    orderer_is_there = story.orderer(view) in story.members(view) and (
        story.way_on(story.orderer(view), view) is not None
    )
    return story.is_final(view) or together or (orderer_is_there and story.run.manifest.policy == "primary")


def steps_back(story: Story) -> Iterator[Place]:
    reached: dict[str, int] = {}
    for row in story.rows(DELIVERED):
        process = process_of(row)
        if row.position <= reached.get(process, -1):
            yield _of_row(row)
        reached[process] = max(reached.get(process, -1), row.position + row.count - 1)


def scattered(story: Story) -> Iterator[Place]:
    for message in story.by_message:
        events = [event for event in story.by_message[message] if story.binds(message, event.view)]
        places = {(event.view, event.position) for event in events}
        if len(places) > 1:
            view, position = min(places)
            yield Place(name_of(view), position, (message,), _processes(events))


# Agreement and Uniformity


def disagreements(story: Story) -> Iterator[Place]:
    for message, view, events in _in_views(story):
        have = {event.process for event in events}
        position = min(event.position for event in events)
        due = [member for member in story.members(view) if story.is_for(message, member, position)]
        ways = {member: story.way_on(member, view) for member in due}
        missing = {
            member
            for member, other in _pairs(due)
            if ways[member] is not None
            and ways[member] == ways[other]
            and other in have
            and member not in have
        }
        on = [member for member in due if ways[member] is not None]
        if set(on) <= have and (on or story.is_final(view)):
            missing |= {
                member
                for member in due
                if ways[member] is None and member not in have and position <= story.last_in(member, view)
            }
        if missing:
            yield Place(name_of(view), position, (message,), tuple(sorted(missing)))


def not_everywhere(story: Story) -> Iterator[Place]:
    """A safe message that any process delivered, and that others who went on lack."""
    for message, view, events in _in_views(story):
        have = {event.process for event in events}
        position = min(event.position for event in events)
        ways_of_havers = {story.way_on(process, view) for process in have & set(story.members(view))}
        missing = [
            member
            for member in story.members(view)
            if _is_safe(story, message)
            and story.is_for(message, member, position)
            and story.way_on(member, view) is not None
            and member not in have
            and (story.run.manifest.policy == "primary" or story.way_on(member, view) in ways_of_havers)
        ]
        if missing:
            yield Place(name_of(view), position, (message,), tuple(sorted(missing)))


def not_held(story: Story) -> Iterator[Place]:
    """A safe message that was delivered in the course of a view, and that some of its members do not hold."""
    for message, view, events in _in_views(story):
        members = story.members(view)
        inside = [event for event in events if event.process in members]
        if not _is_safe(story, message) or not any(_in_course(story, event) for event in inside):
            continue
        packets = [
            event
            for event in story.of(BROADCAST, SENT, RECEIVED)
            if (event.message, event.view) == (message, view)
        ]
        carriers = {event.process for event in packets if event.is_carried}
        placed = [event for event in packets if event.position >= 0]
        if any(event.kind == SENT and event.process in members for event in placed):
            carriers &= {event.process for event in placed}
        lacking = [
            member
            for member in members
            if story.is_addressed(message, member)
            and not (member in story.lost and story.way_on(member, view) is None)
            and member not in carriers
        ]
        if lacking:
            position = min(event.position for event in inside)
            yield Place(name_of(view), position, (message,), tuple(sorted(lacking)))


def _in_course(story: Story, delivery: Event) -> bool:
    """Whether a delivery was certainly made before its view was closed."""
    return story.is_final(delivery.view) or any(
        event.step > delivery.step
        for event in story.of(BROADCAST, SENT, RECEIVED)
        if (event.process, event.view) == (delivery.process, delivery.view)
    )


def _is_safe(story: Story, message: str) -> bool:
    return any(event.safe for event in story.by_message[message])


# FIFO among equals


def out_of_fifo(story: Story) -> Iterator[Place]:
    due = Counter[tuple[str, int]]()
    last_view: dict[tuple[str, int], View] = {}
    for event in sorted(_agreed(story), key=lambda event: (event.view[0], event.position, event.number)):
        sender = event.stream[0]
        began_in = next(iter(story.views_of(sender)), None)
        skipped = [f"{sender}/{event.level}/{number}" for number in range(due[event.stream], event.number)]
        excused = event.number >= due[event.stream] and all(
            message in story.without_place for message in skipped
        )
        changed = (
            story.run.manifest.policy != "primary"
            and event.number > due[event.stream]
            and began_in is not None
            and last_view.get(event.stream, began_in) != event.view
        )
        if event.number != due[event.stream] and not excused and not changed:
            view = name_of(event.view) if event.view in story.views else ""
            yield Place(view, event.position, (event.message,), (sender,))
        due[event.stream] = max(due[event.stream], event.number + 1)
        last_view[event.stream] = event.view


def _agreed(story: Story) -> list[Event]:
    """Every message once, where most delivered it."""
    agreed = []
    for message in story.by_message:
        events = [event for event in story.by_message[message] if story.binds(message, event.view)]
        if not events:
            continue
        votes = Counter((event.view, event.position) for event in events)
        best = max(votes, key=lambda place: (votes[place], -place[0][0], -place[1], place[0][1]))
        agreed.append(next(event for event in events if (event.view, event.position) == best))
    return agreed


# Priority


def wronged(story: Story) -> Iterator[Place]:
    """Who was wronged; by whom, and where, is left open where several did."""
    for view in story.views:
        if story.order(view)["policy"] == "fifo":
            continue
        policy = parse_starvation(story.order(view)["policy"])
        for process, (entered, left) in _queues(story, view):
            rank = {
                message: policy.sort_key(event.urgency, event.time_ns) for message, event in entered.items()
            }
            for waiting in entered:
                if any(
                    entered[waiting].step < gone.step
                    and rank[waiting] < rank[other]
                    and (waiting not in left or _order(gone) < _order(left[waiting]))
                    for other, gone in left.items()
                    if other in entered
                ):
                    yield Place(name_of(view), None, (waiting,), (process,))


def out_of_nowhere(story: Story) -> Iterator[Place]:
    for view in story.views:
        entered, left = _ordering_queue(story, view)
        for message, gone in left.items():
            views = {event.view for event in story.by_message.get(message, [])}
            is_late = message not in entered or gone.step < entered[message].step
            if is_late and (not views or view in views):
                yield Place(name_of(view), gone.position, (message,), (story.orderer(view),))


def _queues(story: Story, view: View) -> Iterator[tuple[str, Queue]]:
    """The queues of a view that go by priority, and whose they are."""
    yield story.orderer(view), _ordering_queue(story, view)
    if story.order(view)["sends_by_priority"]:
        for process in story.processes:
            yield process, _sending_queue(story, view, process)


def _ordering_queue(story: Story, view: View) -> Queue:
    """What the one that orders received, and what it gave a position."""
    order = story.order(view)
    if order["priorities_act"] != "sequencing" or order["policy"] == "fifo":
        return {}, {}
    here = [event for event in story.events if (event.process, event.view) == (story.orderer(view), view)]
    received = [event for event in here if event.kind == RECEIVED and event.position < 0 and event.is_carried]
    sent = [event for event in here if event.kind == SENT and event.position >= 0]
    return {event.message: event for event in received}, {event.message: event for event in sent}


def _sending_queue(story: Story, view: View, process: str) -> Queue:
    """What a process broadcast in a view, and what it sent there of that, unless it had done so before."""
    own = [event for event in story.events if event.process == process == event.stream[0]]
    offered = [event for event in own if event.kind == BROADCAST and event.view == view]
    first: dict[str, Event] = {}
    for event in own:
        judged = event.view in story.views and story.order(event.view)["sends_by_priority"]
        if event.kind == SENT and event.is_carried and judged and story.order(event.view)["policy"] != "fifo":
            first.setdefault(event.message, event)
    return {event.message: event for event in offered}, {
        message: event for message, event in first.items() if event.view == view
    }


def _order(event: Event) -> tuple[int, int]:
    """When it left; the messages of one row do so in the order of their numbers."""
    return event.step, event.number


def _in_views(story: Story) -> Iterator[tuple[str, View, list[Event]]]:
    """The deliveries of each message in each view that is known."""
    for message, events in story.by_message.items():
        for view in {event.view for event in events} & set(story.views):
            yield message, view, [event for event in events if event.view == view]


def _pairs(members: list[str]) -> Iterator[tuple[str, str]]:
    return ((one, other) for one in members for other in members)


def _processes(events: Iterable[Event]) -> tuple[str, ...]:
    return tuple(sorted({event.process for event in events}))


def _of_row(row: Row) -> Place:
    return Place(f"{row.view}@{row.coordinator}", row.position, (id_of(row),), (process_of(row),))
