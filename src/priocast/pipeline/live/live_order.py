"""Checks the order of a run while it goes on: what can be known from the rows that there are so far.

Each process delivers at increasing positions, and the messages of a stream by increasing numbers; at a
position of a view there is one message; a process broadcasts each number of a stream once, and delivers no
message of its own before that. What is missing may still come, so Agreement, Uniformity and empty positions
are left to `priocast verify`, which sees whole traces.

Where queues are re-ordered, a member that drops out of a view may have delivered in another order there than
those that continue (see `pipeline/divergence.py`). So a conflict in such a view counts once both processes
are in a later view together, or when the run has ended. Until then it is undecided.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, TOTAL_ORDER
from priocast.core.violation import Violation
from priocast.pipeline.live.agreed_positions import AgreedPositions, Span
from priocast.pipeline.live.live_rows import BroadcastRow, DeliveredRow, LiveRow, StoppedRow, ViewRow
from priocast.trace.schema import ViewName

_REORDERING = "reorder"
_NONE = -1
_CONFLICTS_MAX = 1000
_VIEWS_MAX = 2


class Conflict(msgspec.Struct, frozen=True):
    """Two processes that delivered different messages at one position of a view."""

    view: ViewName
    processes: tuple[str, str]
    violation: Violation


class LiveOrder:
    """The checks of one run; rows of one process come in the order of its steps."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._positions: defaultdict[ViewName, AgreedPositions] = defaultdict(AgreedPositions)
        self._orders: dict[ViewName, str] = {}
        self._members: dict[ViewName, tuple[str, ...]] = {}
        self._in_view: dict[str, ViewName] = {}
        self._reached: dict[str, int] = {}
        self._numbers: defaultdict[str, dict[object, int]] = defaultdict(dict)
        self._broadcast: dict[object, int] = {}
        self._undecided: list[Conflict] = []

    @property
    def spans_kept(self) -> int:
        """How many deliveries are kept for comparison."""
        return sum(map(len, self._positions.values()))

    @property
    def undecided(self) -> tuple[Violation, ...]:
        """Conflicts in views that stand, as far as they are known: one of the processes may drop out."""
        return tuple(conflict.violation for conflict in self._undecided)

    def take(self, row: LiveRow) -> Iterator[Violation]:
        """What a row shows to be wrong."""
        if isinstance(row, BroadcastRow):
            due = self._broadcast.get(row.stream, _NONE) + 1
            if row.first != due:
                yield self._violation(INTEGRITY, row, f"{row.process} broadcast it when number {due} was due")
            self._broadcast[row.stream] = max(due - 1, row.last)
        elif isinstance(row, ViewRow):
            self._orders[row.view] = row.order
            self._members[row.view] = row.members
            self._in_view[row.process] = row.view
        elif isinstance(row, StoppedRow):
            self._in_view.pop(row.process, None)
        elif isinstance(row, DeliveredRow):
            yield from self._deliver(row)

    def settle(self) -> Iterator[Violation]:
        """Conflicts that have been decided since; positions that all have passed are forgotten."""
        undecided = []
        for conflict in self._undecided:
            later = [self._in_view.get(process, conflict.view) for process in conflict.processes]
            if later[0] == later[1] != conflict.view:
                yield conflict.violation
            elif all(view == conflict.view for view in later) or not self._dropped_out(conflict):
                undecided.append(conflict)
        self._undecided = undecided[-_CONFLICTS_MAX:]
        followed = {*self._in_view.values(), *sorted(self._positions)[-_VIEWS_MAX:]}
        for view in [view for view in self._positions if view not in followed]:
            del self._positions[view]
        for view, positions in self._positions.items():
            inside = [self._reached.get(member, _NONE) for member in self._members.get(view, ())]
            if inside:
                positions.forget_before(min(inside) + 1)

    def end(self) -> Iterator[Violation]:
        """The run has ended: nobody else drops out."""
        yield from self.settle()
        yield from (conflict.violation for conflict in self._undecided)
        self._undecided = []

    def _dropped_out(self, conflict: Conflict) -> bool:
        """Whether one of the processes is not in the view that the other has entered since."""
        for process in conflict.processes:
            view = self._in_view.get(process, conflict.view)
            if view != conflict.view and not set(conflict.processes) <= set(self._members.get(view, ())):
                return True
        return False

    def _deliver(self, row: DeliveredRow) -> Iterator[Violation]:
        reached = self._reached.get(row.process, _NONE)
        if row.position <= reached:
            yield self._violation(
                TOTAL_ORDER, row, f"{row.process} delivered it after it had reached position {reached}"
            )
        self._reached[row.process] = max(reached, row.position + row.count - 1)
        numbers = self._numbers[row.process]
        last = numbers.get(row.stream, _NONE)
        if row.first <= last:
            yield self._violation(
                FIFO_AMONG_EQUALS, row, f"{row.process} delivered it after number {last} of its stream"
            )
        numbers[row.stream] = max(last, row.last)
        if row.process == row.stream.sender and row.last > self._broadcast.get(row.stream, _NONE):
            yield self._violation(INTEGRITY, row, f"{row.process} delivered it without having broadcast it")
        yield from self._compare(row)

    def _compare(self, row: DeliveredRow) -> Iterator[Violation]:
        span = Span(row.position, row.count, row.stream, row.first, row.process)
        for earlier, position in self._positions[row.view].add(span):
            here, there = span.message_at(position), earlier.message_at(position)
            violation = Violation(
                guarantee=TOTAL_ORDER,
                summary=f"{earlier.process} delivered {there}; {row.process} delivered {here}",
                run=self._run,
                view=str(row.view),
                position=position,
                members=tuple(sorted({earlier.process, row.process})),
                messages=tuple(sorted((there, here))),
            )
            if self._orders.get(row.view, _REORDERING).startswith(_REORDERING):
                self._undecided.append(Conflict(row.view, (earlier.process, row.process), violation))
            else:
                yield violation

    def _violation(self, guarantee: str, row: BroadcastRow | DeliveredRow, summary: str) -> Violation:
        return Violation(
            guarantee=guarantee,
            summary=summary,
            run=self._run,
            view=str(row.view) if isinstance(row, DeliveredRow) else "",
            position=row.position if isinstance(row, DeliveredRow) else None,
            members=(row.process,),
            messages=(row.stream.message(row.first),),
        )
