"""The messages at the positions of one view, as the first process delivered them; others are compared."""

from bisect import bisect_right

import msgspec


class StreamName(msgspec.Struct, frozen=True, order=True):
    """The messages of one sender and level."""

    sender: str
    level: int

    def message(self, number: int) -> str:
        """A message as `MessageId` is written."""
        return f"{self.sender}/{self.level}/{number}"


class Span(msgspec.Struct, frozen=True):
    """Consecutive messages of one stream, from `number` on, at consecutive positions from `position` on."""

    position: int
    count: int
    stream: StreamName
    number: int
    process: str

    @property
    def end(self) -> int:
        return self.position + self.count

    def message_at(self, position: int) -> str:
        """The message at one of the positions."""
        return self.stream.message(self.number + position - self.position)

    def between(self, start: int, end: int) -> "Span":
        """The part at the positions from `start` to `end`."""
        number = self.number + start - self.position
        return Span(start, end - start, self.stream, number, self.process)

    def agrees_with(self, other: "Span") -> bool:
        """Whether both have the same messages at the positions that they share."""
        same_offset = self.number - self.position == other.number - other.position
        return self.stream == other.stream and same_offset


class AgreedPositions:
    """Disjoint spans in the order of their positions. What all processes have passed is forgotten."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._spans: list[Span] = []

    def __len__(self) -> int:
        return len(self._spans)

    def add(self, span: Span) -> list[tuple[Span, int]]:
        """Add what a process delivered; return the earlier spans that have another message, and where."""
        conflicts = []
        position = span.position
        index = max(0, bisect_right(self._starts, position) - 1)
        while position < span.end:
            if index < len(self._spans) and self._spans[index].end <= position:
                index += 1
                continue
            earlier = self._spans[index] if index < len(self._spans) else None
            if earlier is None or earlier.position > position:
                end = span.end if earlier is None else min(span.end, earlier.position)
                self._spans.insert(index, span.between(position, end))
                self._starts.insert(index, position)
            else:
                end = min(span.end, earlier.end)
                if not earlier.agrees_with(span):
                    conflicts.append((earlier, position))
            position = end
        return conflicts

    def forget_before(self, position: int) -> None:
        """Every process has passed this position."""
        count = bisect_right(self._starts, position)
        while count and self._spans[count - 1].end > position:
            count -= 1
        del self._starts[:count], self._spans[:count]
