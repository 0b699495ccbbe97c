"""Sets of messages in which those of one sender and level are consecutive: target-tails and histories.

Within a level a sender's messages are queued and consumed in the order of their numbers, so whatever is at
the end of a queue, or was consumed, is one span of them. A message's number counts the sender's messages of
that level in this view.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from priocast.core.message import CONTROL

_RUNS_MAX = 65_536

Stream = tuple[int, int]
"""A level, and the rank of a sender."""

Name = tuple[int, int, int]
"""A message: its level, the rank of its sender, and its number."""


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`count` messages of one level and one sender (by rank), numbered from `first` on."""

    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    sender: Annotated[int, msgspec.Meta(ge=0)]
    first: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1)]

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.first}+{self.count}"


Runs = Annotated[tuple[Run, ...], msgspec.Meta(max_length=_RUNS_MAX)]


class MessageSet:
    """For each stream of messages, from which number to before which one they are in the set."""

    def __init__(self, spans: dict[Stream, tuple[int, int]] | None = None) -> None:
        self.spans = spans or {}

    @classmethod
    def of(cls, runs: Iterable[Run]) -> "MessageSet":
        """The set that these runs make up."""
        return cls({(run.level, run.sender): (run.first, run.first + run.count) for run in runs})

    @property
    def runs(self) -> tuple[Run, ...]:
        """The set as it travels."""
        return tuple(Run(*stream, first, end - first) for stream, (first, end) in sorted(self.spans.items()))

    def __contains__(self, name: Name) -> bool:
        level, sender, number = name
        first, end = self.spans.get((level, sender), (0, 0))
        return first <= number < end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSet) and self.spans == other.spans

    __hash__ = None  # type: ignore[assignment]

    def add(self, name: Name) -> None:
        """Take in the next message of a stream."""
        level, sender, number = name
        first, end = self.spans.get((level, sender), (number, number))
        assert number == end
        self.spans[level, sender] = (first, number + 1)

    def __and__(self, other: "MessageSet") -> "MessageSet":
        """What is in both."""
        both = {
            stream: (max(first, other.spans[stream][0]), min(end, other.spans[stream][1]))
            for stream, (first, end) in self.spans.items()
            if stream in other.spans
        }
        return MessageSet({stream: span for stream, span in both.items() if span[0] < span[1]})

    def __or__(self, other: "MessageSet") -> "MessageSet":
        """What is in either one, and whatever of the same stream is between them."""
        either = dict(self.spans)
        for stream, (first, end) in other.spans.items():
            mine = either.get(stream, (first, end))
            either[stream] = (min(first, mine[0]), max(end, mine[1]))
        return MessageSet(either)
