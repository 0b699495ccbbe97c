"""Which commands of a session have been applied, and their results: a part of the replicated state.

A session's commands may be applied in another order than they were numbered in, because urgent ones
overtake. The table keeps the outcome of every command from the session's *floor* on. The submitter raises the
floor with each command: it knows the outcomes of all commands below.

Everything is bounded, in the same way at every replica. A session keeps the results of its last commands, and
for older ones only that they were applied.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from priocast.core.identity import Number
from priocast.replication.commands import Body, SessionName

SESSIONS_MAX = 1024
RESULTS_MAX = 1024
RESULTS_BYTES_MAX = 4 * 1024 * 1024
OUTSTANDING_MAX = 65_536

OutcomeKind = Literal["applied", "failed", "void", "unfinished", "forgotten"]


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of a command.

    `applied`: `body` is the result. `failed`: `apply` raised an exception, and `body` is its text. `void`: it
    was not applied, and never will be. `unfinished`: it has slots left. `forgotten`: it was applied, or its
    session is too old to tell; the result is not known any more.
    """

    kind: OutcomeKind
    body: Body = b""


VOID = Outcome("void")
UNFINISHED = Outcome("unfinished")
FORGOTTEN = Outcome("forgotten")


class CommandSession(msgspec.Struct, array_like=True):
    """The commands of one session from `floor` on that are not to be applied (again).

    `results` holds the outcomes of the last ones, the oldest first, with `size` bytes in all. `others` holds
    the kind of outcome of those whose result is not kept, or not there yet.
    """

    floor: Number = 0
    results: Annotated[dict[Number, Outcome], msgspec.Meta(max_length=RESULTS_MAX)] = {}
    others: Annotated[dict[Number, OutcomeKind], msgspec.Meta(max_length=OUTSTANDING_MAX)] = {}
    size: Number = 0

    def outcome(self, number: int) -> Outcome | None:
        """What became of a command; None if nothing is known of it: it was not applied yet."""
        if number < self.floor:
            return FORGOTTEN
        kind = self.others.get(number)
        return self.results.get(number) if kind is None else Outcome(kind)

    def accepts(self, number: int) -> bool:
        """Whether a number is within what a session may have outstanding."""
        return number < self.floor + OUTSTANDING_MAX

    def raise_floor(self, floor: int) -> None:
        """The submitter does not need the outcomes below any more; the floor must be higher than before."""
        results, others = self.results, self.others
        below: Iterable[int] = range(self.floor, floor)
        if floor - self.floor > len(results) + len(others):
            below = [number for number in (*results, *others) if number < floor]
        for number in below:
            dropped = results.pop(number, None)
            if dropped is not None:
                self.size -= len(dropped.body)
            else:
                others.pop(number, None)
        self.floor = floor

    def add(self, number: int, outcome: Outcome) -> None:
        """A command has this outcome now."""
        if number in self.others or number in self.results:
            self._drop(number)
        if outcome.kind not in ("applied", "failed"):
            self.others[number] = outcome.kind
            return
        self.results[number] = outcome
        self.size += len(outcome.body)
        while len(self.results) > RESULTS_MAX or (self.size > RESULTS_BYTES_MAX and len(self.results) > 1):
            oldest = next(iter(self.results))
            self._drop(oldest)
            self.others[oldest] = "forgotten"

    def _drop(self, number: int) -> None:
        dropped = self.results.pop(number, None)
        if dropped is not None:
            self.size -= len(dropped.body)
        else:
            self.others.pop(number, None)


Sessions = Annotated[dict[SessionName, CommandSession], msgspec.Meta(max_length=SESSIONS_MAX)]


def name_of(session: str) -> str:
    """The name of the process that a session belongs to."""
    return session.rpartition("#")[0]
