"""The packets of queue re-ordering with lock-sets: what was locked and consumed, and where messages go."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from priocast.core.message import CONTROL
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX
from priocast.protocols.reorder.acknowledgments import (
    Acknowledgment,
    Acknowledgments,
    AcknowledgmentsToAll,
    Count,
    Decision,
    Decisions,
)
from priocast.protocols.reorder.message_ranges import MessageRange, MessageRanges

_PerBatch = msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)

Tails = Annotated[tuple[MessageRanges, ...], _PerBatch]
Point = tuple[Annotated[int, msgspec.Meta(ge=0, le=CONTROL)], Count, Count]
Points = Annotated[tuple[Point | None, ...], _PerBatch]


class LockAcknowledgment(Acknowledgment, frozen=True, array_like=True):
    """Also has the target-tail that each batch has locked, and the consumed-history, both at that moment."""

    tails: Tails
    history: MessageRanges

    def is_consistent(self, members: int) -> bool:
        ranges = (each for several in (*self.tails, self.history) for each in several)
        return len(self.tails) == len(self.proposals) and all(each.sender < members for each in ranges)

    @property
    def entry_count(self) -> int:
        return sum(map(len, self.tails)) + len(self.history)

    def __str__(self) -> str:
        tails = " ".join(map(_text, self.tails))
        return f"{self.sender}:{self.number} {self.proposals} locks {tails} consumed {_text(self.history)}"


class LockDecision(Decision, frozen=True, array_like=True):
    """Also has each batch's provisional insertion point (null: the tail), and the history-set of the packet.

    All members have consumed what is `collected`.
    """

    points: Points
    history: MessageRanges
    collected: MessageRanges

    @property
    def entry_count(self) -> int:
        return len(self.history) + len(self.collected)

    def __str__(self) -> str:
        points = " ".join("tail" if point is None else _name(point) for point in self.points)
        after, collected = _text(self.history), _text(self.collected)
        return f"{self.number} {self.finals} before {points} after {after} collected {collected}"


class LockAcknowledgments(Acknowledgments[LockAcknowledgment], frozen=True, tag="acknowledgments"):
    """From a member to a sender, which decides for all members."""


class LockAcknowledgmentsToAll(
    AcknowledgmentsToAll[LockAcknowledgment], frozen=True, tag="acknowledgments-to-all"
):
    """From a member to all, where every member decides for itself."""


class LockDecisions(Decisions[LockDecision], frozen=True, tag="decisions"):
    """From a sender to all: where its messages go."""


def _text(ranges: Iterable[MessageRange]) -> str:
    return f"[{' '.join(map(str, ranges))}]"


def _name(point: Point) -> str:
    level, sender, number = point
    return f"{sender}/{level}/{number}"
