"""Sets of messages in which those of one sender and level are consecutive: target-tails and histories.

A sender's messages of one level are queued and consumed in the order of their numbers. So those at the
end of a queue, or those that were consumed, are one range of numbers. A message's number counts the
sender's messages of that level in this view.
"""

from collections.abc import Iterable

from priocast.protocols.reorder.message_ranges import MessageRange

Stream = tuple[int, int]
"""A level, and the rank of a sender."""

Spans = dict[Stream, tuple[int, int]]
"""The messages of each stream: their first number, and the number after the last one."""

MessageName = tuple[int, int, int]
"""A message: its level, the rank of its sender, and its number."""


class MessageSet:
    """A set of messages: for each stream, its first number and the number after its last one."""

    def __init__(self, spans: Spans | None = None) -> None:
        self.spans = spans or {}

    @classmethod
    def of(cls, ranges: Iterable[MessageRange]) -> "MessageSet":
        """The union of these ranges."""
        return cls({(each.level, each.sender): (each.first, each.first + each.count) for each in ranges})

    @property
    def ranges(self) -> tuple[MessageRange, ...]:
        """The set as it is sent."""
        return tuple(
            MessageRange(*stream, first, end - first) for stream, (first, end) in sorted(self.spans.items())
        )

    def __contains__(self, name: MessageName) -> bool:
        level, sender, number = name
        first, end = self.spans.get((level, sender), (0, 0))
        return first <= number < end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSet) and self.spans == other.spans

    __hash__ = None  # type: ignore[assignment]

    def extend(self, spans: Spans) -> None:
        """Add messages that follow those of the same streams."""
        for stream, (first, end) in spans.items():
            mine = self.spans.get(stream)
            assert mine is None or mine[1] == first
            self.spans[stream] = (first if mine is None else mine[0], end)

    def __and__(self, other: "MessageSet") -> "MessageSet":
        """The intersection."""
        both = {
            stream: (max(first, other.spans[stream][0]), min(end, other.spans[stream][1]))
            for stream, (first, end) in self.spans.items()
            if stream in other.spans
        }
        return MessageSet({stream: span for stream, span in both.items() if span[0] < span[1]})

    def __or__(self, other: "MessageSet") -> "MessageSet":
        """The union, and what is between the two ranges of a stream."""
        either = dict(self.spans)
        for stream, (first, end) in other.spans.items():
            mine = either.get(stream, (first, end))
            either[stream] = (min(first, mine[0]), max(end, mine[1]))
        return MessageSet(either)
