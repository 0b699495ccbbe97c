"""The chronicle: what each life of each process went through, for the checks that need to know the end.

A life stays in one view after the other. Lives that were told of the same next view *went on together*;
those that are at rest in their last view when the run is over *stayed*. The others fell out: they crashed,
left, or were put out.
"""

from collections.abc import Iterator
from typing import NamedTuple

from priocast.simulation.checkers.checker import Checker, Key, ViewKey, keys_of, process_of, view_of
from priocast.trace.schema import GroupEventRow, MessageRow

STAYED: ViewKey = (-1, "stayed")
FELL_OUT: ViewKey = (-1, "fell out")


class Delivered(NamedTuple):
    """One delivery of a message."""

    position: int
    to: str
    safe: bool

    def is_for(self, process: str) -> bool:
        """Whether the message is addressed to this life."""
        return not self.to or process.rpartition("#")[0] in self.to.split(",")


class Stay:
    """A life in one view: what it delivered there, and where it went on to."""

    def __init__(self, process: str, view: ViewKey) -> None:
        self.process = process
        self.view = view
        self.delivered: dict[Key, Delivered] = {}
        self.onward = FELL_OUT


class Life:
    """One life; what comes before `owes_from` it got as a state."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.stays: list[Stay] = []
        self.owes_from = 0


class Chronicle(Checker):
    """Writes down the lives of a run. `at_rest` are those who have nothing left to do when it is over."""

    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.at_rest: set[str] = set()

    def on_view(self, row: GroupEventRow) -> None:
        process = process_of(row)
        life = self.lives.setdefault(process, Life(process))
        stay = Stay(process, view_of(row))
        if life.stays:
            life.stays[-1].onward = stay.view
        life.stays.append(stay)

    def on_delivered(self, row: MessageRow) -> None:
        life = self.lives.get(process_of(row))
        stay = life.stays[-1] if life and life.stays else None
        if stay is None or stay.view != view_of(row):
            return
        for position, key in enumerate(keys_of(row), row.position):
            stay.delivered[key] = Delivered(position, row.to, row.safe)

    def on_state(self, row: GroupEventRow) -> None:
        self.lives[process_of(row)].owes_from = row.position

    def finish(self, now: int) -> None:
        for life in self.lives.values():
            if life.stays and life.process in self.at_rest:
                life.stays[-1].onward = STAYED

    def by_view(self) -> dict[ViewKey, list[Stay]]:
        """All stays in each view."""
        found: dict[ViewKey, list[Stay]] = {}
        for life in self.lives.values():
            for stay in life.stays:
                found.setdefault(stay.view, []).append(stay)
        return found

    def lacking(self, stays: list[Stay], key: Key, delivered: Delivered) -> Iterator[str]:
        """Of these stays in a view, the lives that should have delivered a message there and did not."""
        for stay in stays:
            owes = delivered.position >= self.lives[stay.process].owes_from
            if owes and key not in stay.delivered and delivered.is_for(stay.process):
                yield stay.process
