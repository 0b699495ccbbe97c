"""What the check of View synchrony should find, said in the plainest way."""

import json
from collections.abc import Iterator
from itertools import pairwise

from pipeline.story import Place, Story, View, id_of, name_of, orderer_of, process_of
from priocast.trace.schema import DELIVERED, VIEW, Row


def expected_places(story: Story) -> Iterator[Place]:
    """Every violation of View synchrony."""
    for row in story.rows(VIEW):
        yield from told_otherwise(story, row)
    for process in story.processes:
        rows = story.told[process]
        for before, row in pairwise(rows):
            if row.view <= before.view:
                yield _of_view_row(row)
    yield from out_of_view(story)
    yield from from_strangers(story)
    if story.run.manifest.policy == "primary":
        yield from side_by_side(story)
        yield from left_out(story)
        yield from minorities(story)


def told_otherwise(story: Story, row: Row) -> Iterator[Place]:
    view = _view(row)
    if process_of(row) not in row.peer.split(","):
        yield _of_view_row(row)
    if row.peer.split(",")[0] != row.coordinator:
        yield _of_view_row(row)
    for differs in (
        tuple(row.peer.split(",")) != story.members(view),
        row.position != story.first_position(view),
        orderer_of(row) != story.orderer(view),
        row.packet != story.reason(view),
        json.loads(row.order) != story.order(view),
    ):
        if differs:
            yield _of_view_row(row)


def out_of_view(story: Story) -> Iterator[Place]:
    """Deliveries that are not between the right two views, in time or by position."""
    for row in story.rows(DELIVERED):
        view, process = _view(row), process_of(row)
        if view not in story.views or process not in story.members(view):
            continue
        views = story.views_of(process)
        if view not in views:
            yield _of_row(row)
            continue
        told = story.told[process]
        mine = told[views.index(view)]
        after = told[views.index(view) + 1 :][:1]
        if (
            row.step < mine.step
            or row.position < mine.position
            or any(row.step > other.step or row.position + row.count > other.position for other in after)
        ):
            yield _of_row(row)


def from_strangers(story: Story) -> Iterator[Place]:
    for view in story.views:
        rows = [row for row in story.rows(DELIVERED) if _view(row) == view]
        for stranger in {orderer_of(row) for row in rows} - set(story.members(view)):
            first = min((row.position, id_of(row)) for row in rows if orderer_of(row) == stranger)
            yield Place(name_of(view), first[0], (first[1],), (stranger,))


def side_by_side(story: Story) -> Iterator[Place]:
    for view in story.views:
        if any(other[0] == view[0] and other < view for other in story.views):
            told = tuple(process for process in story.processes if view in story.views_of(process))
            yield Place(name_of(view), story.first_position(view), (), told)


def left_out(story: Story) -> Iterator[Place]:
    for process in story.processes:
        rows = story.told[process]
        for before, row in pairwise(rows):
            if any(before.view < number < row.view for number, _ in story.views):
                yield _of_view_row(row)


def minorities(story: Story) -> Iterator[Place]:
    for view in story.views:
        lower = [other for other in story.views if other[0] < view[0]]
        if not lower:
            continue
        members = story.members(view)
        nearest = [other for other in lower if other[0] == max(number for number, _ in lower)]
        came = max(
            ([process for process in story.members(other) if process in members] for other in nearest),
            key=len,
        )
        previous = next(
            other
            for other in nearest
            if len([process for process in story.members(other) if process in members]) == len(came)
        )
        electors = story.members(previous)
        agreeing = [
            process for process in electors if process in members or _is_let_go(process, story.reason(view))
        ]
        if len(agreeing) * 2 < len(electors) or (
            len(agreeing) * 2 == len(electors) and electors[0] not in agreeing
        ):
            came = [process for process in electors if process in members]
            yield Place(name_of(view), story.first_position(view), (), tuple(sorted(came)))


def _is_let_go(process: str, reason: str) -> bool:
    """Whether something is said of it besides that it failed, or that another life of it joined."""
    name = process.partition("#")[0]
    said = [text for text in reason.split("; ") if text.split(" ")[0] == name]
    return any(text not in (f"{name} failed", f"{name} joined") for text in said)


def _view(row: Row) -> View:
    return row.view, row.coordinator


def _of_view_row(row: Row) -> Place:
    return Place(f"{row.view}@{row.coordinator}", row.position, (), (process_of(row),))


def _of_row(row: Row) -> Place:
    return Place(f"{row.view}@{row.coordinator}", row.position, (id_of(row),), (process_of(row),))
