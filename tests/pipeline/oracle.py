"""What the checks should find, said in the plainest way: every message by itself, every pair compared.

Slow, and without any idea that the Spark checks use; both read the same rows.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

from pipeline.sample_runs import SampleRun
from priocast.core.starvation import parse_starvation
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, Row


class Place(NamedTuple):
    """Where a violation is."""

    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]


class Event(NamedTuple):
    """One thing that happened to one message."""

    process: str
    step: int
    index: int  # type: ignore[assignment]  # a column, not tuple.index
    message: str
    stream: tuple[str, int]
    number: int
    level: int
    time_ns: int
    position: int


def expected_places(run: SampleRun) -> dict[str, list[Place]]:
    """Every violation of every property, by property."""
    processes = sorted(f"{name}#1" for name in run.manifest.members)
    deliveries = _events(run, DELIVERED)
    return {
        "Integrity": [*repeated(deliveries), *never_broadcast(deliveries, _events(run, BROADCAST))],
        "Total order": [*conflicts(deliveries), *unfilled(deliveries), *steps_back(run)],
        "Agreement": disagreements(deliveries, processes),
        "FIFO among equals": out_of_fifo(deliveries),
        "Priority": [*wronged(run), *out_of_nowhere(run)],
    }


def repeated(deliveries: list[Event]) -> list[Place]:
    positions = defaultdict(list)
    for event in deliveries:
        positions[event.message, event.process].append(event.position)
    return [
        Place(max(at), (message,), (process,)) for (message, process), at in positions.items() if len(at) > 1
    ]


def never_broadcast(deliveries: list[Event], broadcasts: list[Event]) -> list[Place]:
    known = {event.message for event in broadcasts}
    unknown = {event.message for event in deliveries} - known
    return [
        Place(
            min(event.position for event in deliveries if event.message == message),
            (message,),
            tuple(sorted({event.process for event in deliveries if event.message == message})),
        )
        for message in unknown
    ]


def conflicts(deliveries: list[Event]) -> list[Place]:
    at = defaultdict(list)
    for event in deliveries:
        at[event.position].append(event)
    return [
        Place(
            position,
            tuple(sorted({event.message for event in events})),
            tuple(sorted({event.process for event in events})),
        )
        for position, events in at.items()
        if len({event.message for event in events}) > 1
    ]


def unfilled(deliveries: list[Event]) -> list[Place]:
    places, due = [], 0
    for position in sorted({event.position for event in deliveries}):
        if position != due:
            places.append(Place(due, (), ()))
        due = position + 1
    return places


def steps_back(run: SampleRun) -> list[Place]:
    reached: dict[str, int] = {}
    places = []
    for row in sorted((row for row in run.rows if row.event == DELIVERED), key=lambda row: row.step):
        if row.position <= reached.get(row.member, -1):
            places.append(Place(row.position, (_id(row, 0),), (f"{row.member}#1",)))
        reached[row.member] = max(reached.get(row.member, -1), row.position + row.count - 1)
    return places


def disagreements(deliveries: list[Event], processes: list[str]) -> list[Place]:
    by = defaultdict(set)
    at = defaultdict(list)
    for event in deliveries:
        by[event.message].add(event.process)
        at[event.message].append(event.position)
    return [
        Place(min(at[message]), (message,), tuple(process for process in processes if process not in who))
        for message, who in by.items()
        if set(processes) - who
    ]


def out_of_fifo(deliveries: list[Event]) -> list[Place]:
    votes: dict[Event, Counter[int]] = {}
    for event in deliveries:
        anywhere = event._replace(process="", step=0, index=0, time_ns=0, position=0)
        votes.setdefault(anywhere, Counter())[event.position] += 1
    order = [
        event._replace(position=max(at, key=lambda position: (at[position], -position)))
        for event, at in votes.items()
    ]
    places, due = [], Counter[tuple[str, int]]()
    for event in sorted(order, key=lambda event: (event.position, event.number)):
        if event.number != due[event.stream]:
            places.append(Place(event.position, (event.message,), (event.stream[0],)))
        due[event.stream] = max(due[event.stream], event.number + 1)
    return places


def wronged(run: SampleRun) -> list[Place]:
    """Who was wronged; by whom, and where, is left open where several did."""
    entered, left = _queue(run)
    policy = parse_starvation(run.manifest.starvation)
    rank = {message: policy.rank(event.level, event.time_ns) for message, event in entered.items()}
    return [
        Place(None, (waiting,), (f"{run.manifest.orderer}#1",))
        for waiting in entered
        if any(
            entered[waiting].step < gone.step
            and rank[waiting] < rank[other]
            and (waiting not in left or _order(gone) < _order(left[waiting]))
            for other, gone in left.items()
            if other in entered
        )
    ]


def out_of_nowhere(run: SampleRun) -> list[Place]:
    entered, left = _queue(run)
    return [
        Place(gone.position, (message,), (f"{run.manifest.orderer}#1",))
        for message, gone in left.items()
        if message not in entered or gone.step < entered[message].step
    ]


def _queue(run: SampleRun) -> tuple[dict[str, Event], dict[str, Event]]:
    at = f"{run.manifest.orderer}#1"
    received = [event for event in _events(run, RECEIVED) if event.process == at and event.position < 0]
    sent = [event for event in _events(run, SENT) if event.process == at and event.position >= 0]
    return {event.message: event for event in received}, {event.message: event for event in sent}


def _order(event: Event) -> tuple[int, int]:
    return event.step, event.position


def _events(run: SampleRun, event: str) -> list[Event]:
    return [
        Event(
            f"{row.member}#{row.incarnation}",
            row.step,
            index,
            _id(row, index),
            (f"{row.sender}#{row.sender_incarnation}", row.level),
            row.first + index,
            row.level,
            row.time_ns,
            row.position if row.position < 0 else row.position + index,
        )
        for row in run.rows
        if row.event == event
        for index in range(row.count)
    ]


def _id(row: Row, index: int) -> str:
    return f"{row.sender}#{row.sender_incarnation}/{row.level}/{row.first + index}"
