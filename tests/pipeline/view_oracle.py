"""What the check of View synchrony must find, computed in the simplest way."""

from collections.abc import Iterator
from itertools import pairwise

from pipeline.trace_facts import (
    Place,
    TraceFacts,
    View,
    id_of,
    name_of,
    order_of,
    process_of,
    reason_of,
    sender_of,
)
from priocast.trace.schema import DELIVERED, VIEW, GroupEventRow, MessageRow, TraceRow


def expected_places(facts: TraceFacts) -> Iterator[Place]:
    """Every violation of View synchrony."""
    for row in facts.group_events(VIEW):
        yield from received_otherwise(facts, row)
    for process in facts.processes:
        rows = facts.received[process]
        for before, row in pairwise(rows):
            if row.view <= before.view:
                yield _of_view_row(row)
    yield from out_of_view(facts)
    yield from from_outsiders(facts)
    if facts.run.manifest.policy == "primary":
        yield from same_number(facts)
        yield from skipped(facts)
        yield from minorities(facts)


def received_otherwise(facts: TraceFacts, row: GroupEventRow) -> Iterator[Place]:
    view = _view(row)
    if process_of(row) not in row.members:
        yield _of_view_row(row)
    if row.members[0] != row.coordinator:
        yield _of_view_row(row)
    for differs in (
        row.members != facts.members(view),
        row.position != facts.first_position(view),
        row.orderer != facts.orderer(view),
        reason_of(row) != facts.reason(view),
        order_of(row) != facts.order(view),
    ):
        if differs:
            yield _of_view_row(row)


def out_of_view(facts: TraceFacts) -> Iterator[Place]:
    """Deliveries that are not between the right two views, in time or by position."""
    for row in facts.rows(DELIVERED):
        view, process = _view(row), process_of(row)
        if view not in facts.views or process not in facts.members(view):
            continue
        views = facts.views_of(process)
        if view not in views:
            yield _of_row(row)
            continue
        received = facts.received[process]
        mine = received[views.index(view)]
        after = received[views.index(view) + 1 :][:1]
        if (
            row.step < mine.step
            or row.position < mine.position
            or any(row.step > other.step or row.position + row.count > other.position for other in after)
        ):
            yield _of_row(row)


def from_outsiders(facts: TraceFacts) -> Iterator[Place]:
    for view in facts.views:
        rows = [row for row in facts.rows(DELIVERED) if _view(row) == view]
        for outsider in {sender_of(row) for row in rows} - set(facts.members(view)):
            first = min((row.position, id_of(row)) for row in rows if sender_of(row) == outsider)
            yield Place(name_of(view), first[0], (first[1],), (outsider,))


def same_number(facts: TraceFacts) -> Iterator[Place]:
    for view in facts.views:
        if any(other[0] == view[0] and other < view for other in facts.views):
            received = tuple(process for process in facts.processes if view in facts.views_of(process))
            yield Place(name_of(view), facts.first_position(view), (), received)


def skipped(facts: TraceFacts) -> Iterator[Place]:
    for process in facts.processes:
        rows = facts.received[process]
        for before, row in pairwise(rows):
            if any(before.view < number < row.view for number, _ in facts.views):
                yield _of_view_row(row)


def minorities(facts: TraceFacts) -> Iterator[Place]:
    for view in facts.views:
        lower = [other for other in facts.views if other[0] < view[0]]
        if not lower:
            continue
        members = facts.members(view)
        nearest = [other for other in lower if other[0] == max(number for number, _ in lower)]
        came = max(
            ([process for process in facts.members(other) if process in members] for other in nearest),
            key=len,
        )
        previous = next(
            other
            for other in nearest
            if len([process for process in facts.members(other) if process in members]) == len(came)
        )
        electors = facts.members(previous)
        agreeing = [
            process for process in electors if process in members or _left_or_evicted(process, facts, view)
        ]
        if len(agreeing) * 2 < len(electors) or (
            len(agreeing) * 2 == len(electors) and electors[0] not in agreeing
        ):
            came = [process for process in electors if process in members]
            yield Place(name_of(view), facts.first_position(view), (), tuple(sorted(came)))


def _left_or_evicted(process: str, facts: TraceFacts, view: View) -> bool:
    """Whether the reason for a view says that a process left or was evicted."""
    name = process.partition("#")[0]
    _, _, left, _, evicted, *_ = facts.reason(view)
    return name in left or name in [member for member, *_ in evicted]  # type: ignore[operator,attr-defined]


def _view(row: TraceRow) -> View:
    return row.view, row.coordinator


def _of_view_row(row: GroupEventRow) -> Place:
    return Place(f"{row.view}@{row.coordinator}", row.position, (), (process_of(row),))


def _of_row(row: MessageRow) -> Place:
    return Place(f"{row.view}@{row.coordinator}", row.position, (id_of(row),), (process_of(row),))
