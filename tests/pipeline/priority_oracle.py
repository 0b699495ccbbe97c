"""What the check of Priority must find, computed in the simplest way: queue by queue, pair by pair."""

from collections.abc import Iterator

from pipeline.trace_facts import Event, Place, TraceFacts, View, name_of
from priocast.core.starvation import parse_starvation
from priocast.trace.schema import BROADCAST, RECEIVED, SENT

Queue = tuple[dict[str, Event], dict[str, Event]]
"""What entered a queue, and what left it."""


def overtaken(facts: TraceFacts) -> Iterator[Place]:
    """The messages that were overtaken wrongly; by which other message is left open if there are several."""
    for view in facts.views:
        if facts.order(view).policy == "fifo":
            continue
        policy = parse_starvation(facts.order(view).policy)
        for process, (entered, left) in _queues(facts, view):
            key = {
                message: policy.sort_key(event.urgency, event.time_ns) for message, event in entered.items()
            }
            for waiting in entered:
                if any(
                    entered[waiting].step < gone.step
                    and key[waiting] < key[other]
                    and (waiting not in left or _order(gone) < _order(left[waiting]))
                    for other, gone in left.items()
                    if other in entered
                ):
                    yield Place(name_of(view), None, (waiting,), (process,))


def not_in_queue(facts: TraceFacts) -> Iterator[Place]:
    for view in facts.views:
        entered, left = _ordering_queue(facts, view)
        for message, gone in left.items():
            views = {event.view for event in facts.by_message.get(message, [])}
            is_late = message not in entered or gone.step < entered[message].step
            if is_late and (not views or view in views):
                yield Place(name_of(view), gone.position, (message,), (facts.orderer(view),))


def _queues(facts: TraceFacts, view: View) -> Iterator[tuple[str, Queue]]:
    """The queues of a view that are ordered by priority, and their owners."""
    yield facts.orderer(view), _ordering_queue(facts, view)
    if facts.order(view).sends_by_priority:
        for process in facts.processes:
            yield process, _sending_queue(facts, view, process)


def _ordering_queue(facts: TraceFacts, view: View) -> Queue:
    """What the orderer received, and what it gave a position."""
    order = facts.order(view)
    if order.priorities_act != "sequencing" or order.policy == "fifo":
        return {}, {}
    here = [event for event in facts.events if (event.process, event.view) == (facts.orderer(view), view)]
    received = [event for event in here if event.kind == RECEIVED and event.position < 0 and event.is_carried]
    sent = [event for event in here if event.kind == SENT and event.position >= 0]
    return {event.message: event for event in received}, {event.message: event for event in sent}


def _sending_queue(facts: TraceFacts, view: View, process: str) -> Queue:
    """What a process first broadcast in a view, and which of that it first sent there."""
    own = [event for event in facts.events if event.process == process == event.stream[0]]
    offered = [event for event in own if event.kind == BROADCAST and event.view == view]
    first: dict[str, Event] = {}
    for event in own:
        judged = event.view in facts.views and facts.order(event.view).sends_by_priority
        if event.kind == SENT and event.is_carried and judged and facts.order(event.view).policy != "fifo":
            first.setdefault(event.message, event)
    return {event.message: event for event in reversed(offered)}, {
        message: event for message, event in first.items() if event.view == view
    }


def _order(event: Event) -> tuple[int, int]:
    """When it left; the messages of one row leave in the order of their numbers."""
    return event.step, event.number
