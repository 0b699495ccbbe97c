"""The history of a run: what each incarnation did in each of its views, for checks that need to know the end.

Incarnations whose applications were notified of the same next view *continued together*. Those that are idle
in their last view when the run is over *stayed* in it. All others *dropped out*: they crashed, left, were
evicted, or the group continued without them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from priocast.simulation.checkers.checker import Checker
from priocast.simulation.checkers.rows import (
    Key,
    StateEvent,
    ViewEvent,
    ViewKey,
    is_addressed_to,
    keys_of,
    name_of,
    process_of,
    view_of,
)
from priocast.trace.schema import MessageRow

STAYED: ViewKey = (-1, "stayed")
DROPPED_OUT: ViewKey = (-1, "dropped out")


class DeliveryRecord(NamedTuple):
    """One delivery of a message."""

    position: int
    to: str
    safe: bool


class EpochHistory:
    """One incarnation in one view: what it delivered there, and the view that it continued to."""

    def __init__(self, process: str, view: ViewKey) -> None:
        self.process = process
        self.view = view
        self.delivered: dict[Key, DeliveryRecord] = {}
        self.next_view = DROPPED_OUT

    @property
    def dropped_out(self) -> bool:
        """Whether the incarnation neither continued from this view nor stayed in it."""
        return self.next_view == DROPPED_OUT


class IncarnationHistory:
    """The epochs of one incarnation; it took over the messages before `state_position` with a state."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.epochs: list[EpochHistory] = []
        self.state_position = 0


class RunHistory(Checker):
    """Records the incarnations of a run; `idle` are those that have nothing left to do when it is over."""

    def __init__(self) -> None:
        self.incarnations: dict[str, IncarnationHistory] = {}
        self.idle: set[str] = set()

    def on_view(self, event: ViewEvent) -> None:
        process = event.process
        incarnation = self.incarnations.setdefault(process, IncarnationHistory(process))
        epoch = EpochHistory(process, event.view)
        if incarnation.epochs:
            incarnation.epochs[-1].next_view = epoch.view
        incarnation.epochs.append(epoch)

    def on_delivered(self, row: MessageRow) -> None:
        incarnation = self.incarnations.get(process_of(row))
        epoch = incarnation.epochs[-1] if incarnation and incarnation.epochs else None
        if epoch is None or epoch.view != view_of(row):
            return
        for position, key in enumerate(keys_of(row), row.position):
            epoch.delivered[key] = DeliveryRecord(position, row.to, row.safe)

    def on_state(self, event: StateEvent) -> None:
        self.incarnations[event.process].state_position = event.position

    def finish(self, now: int) -> None:
        for incarnation in self.incarnations.values():
            if incarnation.epochs and incarnation.process in self.idle:
                incarnation.epochs[-1].next_view = STAYED

    def by_view(self) -> dict[ViewKey, list[EpochHistory]]:
        """All epochs of each view."""
        found: dict[ViewKey, list[EpochHistory]] = {}
        for incarnation in self.incarnations.values():
            for epoch in incarnation.epochs:
                found.setdefault(epoch.view, []).append(epoch)
        return found

    def missing(self, epochs: list[EpochHistory], key: Key, delivered: DeliveryRecord) -> Iterator[str]:
        """Of these epochs of a view, the incarnations that should have delivered a message and did not."""
        for epoch in epochs:
            expected = delivered.position >= self.incarnations[epoch.process].state_position
            if (
                expected
                and key not in epoch.delivered
                and is_addressed_to(delivered.to, name_of(epoch.process))
            ):
                yield epoch.process
