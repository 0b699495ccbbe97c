"""What members send about a packet of data: an acknowledgment from each of them, then a decision."""

from collections.abc import Sequence
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec

from priocast.core.identity import Number
from priocast.core.protocol import Packet
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX

#: The most acknowledgments or decisions in one packet, and the most entries. An entry takes up to 20 bytes.
#: An acknowledgment with more entries than that travels alone.
PER_PACKET_MAX = 32
_ENTRIES_MAX = 32_768

Count = Number
PerBatch = Annotated[tuple[Count, ...], msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)]
_PerPacket = msgspec.Meta(min_length=1, max_length=PER_PACKET_MAX)


class Acknowledgment(msgspec.Struct, frozen=True, array_like=True):
    """A member's reply to a packet of data: the numbers that it proposes for the batches.

    The packet is the one of this `number` from the sender of that rank.
    """

    sender: Count
    number: Count
    proposals: PerBatch

    def is_consistent(self, members: int) -> bool:
        """Whether its parts fit together, in a view of this many members."""
        return True

    @property
    def entry_count(self) -> int:
        """How many entries it has, if there may be many."""
        return 0


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """The outcome for packet `number` of the sender: the final number of each batch in its level."""

    number: Count
    finals: PerBatch

    @property
    def entry_count(self) -> int:
        """How many entries it has, if there may be many."""
        return 0


AcknowledgmentT = TypeVar("AcknowledgmentT", bound=Acknowledgment)
DecisionT = TypeVar("DecisionT", bound=Decision)


class Acknowledgments(Packet, Generic[AcknowledgmentT], frozen=True, tag="acknowledgments"):
    """From a member to a sender, which decides for all members."""

    acknowledgments: Annotated[tuple[AcknowledgmentT, ...], _PerPacket]


class AcknowledgmentsToAll(Packet, Generic[AcknowledgmentT], frozen=True, tag="acknowledgments-to-all"):
    """From a member to all, where every member decides for itself (`distributed`)."""

    TO_ALL = True

    acknowledgments: Annotated[tuple[AcknowledgmentT, ...], _PerPacket]


class Decisions(Packet, Generic[DecisionT], frozen=True, tag="decisions"):
    """From a sender to all: the outcomes for packets of its own."""

    TO_ALL = True

    decisions: Annotated[tuple[DecisionT, ...], _PerPacket]


class _Sized(Protocol):
    @property
    def entry_count(self) -> int: ...


SizedT = TypeVar("SizedT", bound=_Sized)


def in_packets(items: Sequence[SizedT]) -> list[tuple[SizedT, ...]]:
    """Acknowledgments or decisions, in order, as many together as fit into a packet."""
    if len(items) == 1:
        return [tuple(items)]
    packets: list[tuple[SizedT, ...]] = []
    current: list[SizedT] = []
    entries = 0
    for item in items:
        entries += item.entry_count
        if current and (len(current) == PER_PACKET_MAX or entries > _ENTRIES_MAX):
            packets.append(tuple(current))
            current, entries = [], item.entry_count
        current.append(item)
    return [*packets, tuple(current)] if current else packets


def highest(proposals: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The largest number that any member proposes for each batch."""
    return tuple(map(max, zip(*proposals, strict=True)))
