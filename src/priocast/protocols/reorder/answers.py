"""Answers: what every member says to a packet of data, and how they are collected until all have come."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import PacketId
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX

Count = Annotated[int, msgspec.Meta(ge=0)]
PerBatch = Annotated[tuple[Count, ...], msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)]
Key = tuple[int, int]

#: So many answers or decisions are in one packet, unless they have more entries than this. An entry takes up
#: to 20 bytes, and one that is larger by itself travels alone.
TOGETHER_MAX = 32
_TOGETHER_WEIGHT_MAX = 32_768


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a member says to a packet of data: the numbers that it proposes for the batches, to begin with."""

    sender: Count
    number: Count
    proposals: PerBatch

    @property
    def weight(self) -> int:
        """Of how many entries it consists, if they are many."""
        return 0


AnswerT = TypeVar("AnswerT", bound=Answer)


class _Weighed(Protocol):
    @property
    def weight(self) -> int: ...


WeighedT = TypeVar("WeighedT", bound=_Weighed)


def together(weighed: Sequence[WeighedT]) -> Iterator[tuple[WeighedT, ...]]:
    """Answers or decisions, in order, as many at a time as fit into a frame."""
    gathered: list[WeighedT] = []
    weight = 0
    for each in weighed:
        weight += each.weight
        if gathered and (len(gathered) == TOGETHER_MAX or weight > _TOGETHER_WEIGHT_MAX):
            yield tuple(gathered)
            gathered, weight = [], each.weight
        gathered.append(each)
    if gathered:
        yield tuple(gathered)


class Complete(NamedTuple, Generic[AnswerT]):
    """The answers of all members, by rank, and the marks of the packets that brought them."""

    answers: list[AnswerT]
    packet_ids: list[PacketId]


class Collector(Generic[AnswerT]):
    """Answers by the data that they are for; each member answers a sender's data once, and in order."""

    def __init__(self, me: ProcessId, members: Sequence[ProcessId]) -> None:
        self._members = members
        self._my_rank = members.index(me)
        self._number_next = [[0] * len(members) for _ in members]
        self._collected: dict[Key, list[tuple[AnswerT, PacketId] | None]] = {}

    def add(self, rank: int, answer: AnswerT, packet_id: PacketId) -> Complete[AnswerT] | None:
        """Take a member's answer; return all of them if it was the last one."""
        member, key = self._members[rank], (answer.sender, answer.number)
        if answer.sender >= len(self._members):
            raise PeerFault(f"{member} answers a sender that is no member")
        number_next = self._number_next[rank]
        if answer.number != number_next[answer.sender]:
            raise PeerFault(f"{member} answers data {key}, where number {number_next[answer.sender]} is next")
        number_next[answer.sender] += 1
        collected = self._collected.get(key)
        if collected is None:
            collected = self._collected[key] = [None] * len(self._members)
        collected[rank] = (answer, packet_id)
        if None in collected:
            return None
        del self._collected[key]
        answers = [each for each in collected if each is not None]
        complete = Complete([answer for answer, _ in answers], [packet_id for _, packet_id in answers])
        self._check_lengths(key, complete.answers)
        return complete

    def _check_lengths(self, key: Key, answers: list[AnswerT]) -> None:
        """All answer to as many batches as this member does."""
        length = len(answers[self._my_rank].proposals)
        for member, answer in zip(self._members, answers, strict=True):
            if len(answer.proposals) != length:
                raise PeerFault(f"{member} does not answer to each batch of data {key}")
