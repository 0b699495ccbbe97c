"""Consecutive messages of one level in the queue with lock-sets.

All messages of a block have the same locks. Only the block at the front becomes shorter, when its messages
are consumed; messages of its level are appended to it; one that goes into its middle splits it.
"""

from collections import deque

from priocast.core.message import Batch
from priocast.protocols.reorder.level_order import Insertion, InsertionId
from priocast.protocols.reorder.message_sets import MessageName, MessageSet, Spans, Stream

Lock = tuple[int, InsertionId]
"""The batch that has locked a message: its level and its id."""


class LockInsertion(Insertion):
    """A batch that is inserted, the number of its first message, and what was decided.

    `point` is the provisional insertion point, None for the tail. `history` is the history-set: what some
    member had consumed when it received the batch.
    """

    __slots__ = ("end", "first", "history", "lock", "point", "stream")

    def __init__(self, batch: Batch, identity: InsertionId, proposal: int, first: int) -> None:
        super().__init__(batch, identity, proposal)
        self.first = first
        self.end = first + batch.count  # the number after its last message
        self.stream: Stream = (self.level, identity[0])
        self.lock: Lock = (self.level, identity)
        self.point: MessageName | None = None
        self.history = MessageSet()


class Segment:
    """Consecutive messages of one batch: from the number `first` to before `end`."""

    __slots__ = ("end", "first", "insertion")

    def __init__(self, insertion: LockInsertion, first: int, end: int) -> None:
        self.insertion = insertion
        self.first = first
        self.end = end


class Block:
    """Consecutive messages of one level, or a dummy at one of the queue's ends, and their lock-set.

    `spans` are the messages by stream. Those of a stream are consecutive numbers.
    """

    __slots__ = ("level", "locks", "segments", "spans")

    def __init__(self, level: int, locks: set[Lock]) -> None:
        self.level = level
        self.locks = locks
        self.segments: deque[Segment] = deque()
        self.spans: Spans = {}

    def append(self, insertion: LockInsertion, first: int, end: int) -> None:
        """Append messages of a batch."""
        self.segments.append(Segment(insertion, first, end))
        span = self.spans.get(insertion.stream)
        assert span is None or span[1] == first
        self.spans[insertion.stream] = (first if span is None else span[0], end)

    def consume(self, count: int) -> LockInsertion:
        """Remove messages of the first batch; return the batch."""
        segment = self.segments[0]
        segment.first += count
        assert segment.first <= segment.end
        if segment.first == segment.end:
            self.segments.popleft()
        stream = segment.insertion.stream
        end = self.spans[stream][1]
        if segment.first == end:
            del self.spans[stream]
        else:
            self.spans[stream] = (segment.first, end)
        return segment.insertion

    def __contains__(self, name: MessageName) -> bool:
        first, end = self.spans.get(name[:2], (0, 0))
        return first <= name[2] < end

    def overlaps(self, messages: MessageSet) -> bool:
        """Whether any of its messages is in a set."""
        for stream, (first, end) in self.spans.items():
            span = messages.spans.get(stream)
            if span is not None and first < span[1] and span[0] < end:
                return True
        return False

    def ends_in(self, messages: MessageSet) -> bool:
        """Whether its last message is in a set."""
        last = self.segments[-1]
        return (*last.insertion.stream, last.end - 1) in messages

    def first_in(self, messages: MessageSet) -> MessageName:
        """Its first message that is in a set, which it overlaps."""
        for segment in self.segments:
            first, end = messages.spans.get(segment.insertion.stream, (0, 0))
            first = max(first, segment.first)
            if first < min(end, segment.end):
                return (*segment.insertion.stream, first)
        raise AssertionError("nothing of the block is in the set")

    def first_after(self, messages: MessageSet) -> MessageName:
        """Its first message that is not in a set, which has the messages before it."""
        for segment in self.segments:
            first, end = messages.spans.get(segment.insertion.stream, (0, 0))
            if not first <= segment.first < end:
                return (*segment.insertion.stream, segment.first)
            if end < segment.end:
                return (*segment.insertion.stream, end)
        raise AssertionError("all messages of the block are in the set")

    def split(self, name: MessageName) -> "Block":
        """Remove the messages before this one; return them as a block with the same locks."""
        front = Block(self.level, set(self.locks))
        while name[:2] != (segment := self.segments[0]).insertion.stream or segment.end <= name[2]:
            front.append(segment.insertion, segment.first, segment.end)
            self.consume(segment.end - segment.first)
        if segment.first < name[2]:
            front.append(segment.insertion, segment.first, name[2])
            self.consume(name[2] - segment.first)
        return front
