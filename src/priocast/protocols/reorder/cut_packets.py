"""The packets of queue re-ordering by cuts: acknowledgments and decisions with a cut."""

from typing import Annotated

import msgspec

from priocast.protocols.reorder.acknowledgments import (
    Acknowledgment,
    Acknowledgments,
    AcknowledgmentsToAll,
    Count,
    Decision,
    Decisions,
)

CutEntries = tuple[tuple[Annotated[int, msgspec.Meta(ge=0, le=255)], Count, Count], ...]
"""A cut as it is sent: the level, the number of a batch in it, and how many messages of the batch."""

PerLevel = Annotated[CutEntries, msgspec.Meta(max_length=256)]


class CutAcknowledgment(Acknowledgment, frozen=True, array_like=True):
    """Also says up to where the member's application had consumed each lower level."""

    consumed: PerLevel

    def __str__(self) -> str:
        return f"{self.sender}:{self.number} {self.proposals} consumed {_text(self.consumed)}"


class CutDecision(Decision, frozen=True, array_like=True):
    """Also contains the cut of all batches of the packet."""

    cut: PerLevel

    def __str__(self) -> str:
        return f"{self.number} {self.finals} after {_text(self.cut)}"


class CutAcknowledgments(Acknowledgments[CutAcknowledgment], frozen=True, tag="acknowledgments"):
    """From a member to a sender, which decides for all members."""


class CutAcknowledgmentsToAll(
    AcknowledgmentsToAll[CutAcknowledgment], frozen=True, tag="acknowledgments-to-all"
):
    """From a member to all, where every member decides for itself."""


class CutDecisions(Decisions[CutDecision], frozen=True, tag="decisions"):
    """From a sender to all: where its messages go."""


def _text(entries: CutEntries) -> str:
    return f"[{', '.join(f'{level}/{number}+{taken}' for level, number, taken in entries)}]"
