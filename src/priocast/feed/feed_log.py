"""The messages of a group by their positions, on disk: what a feed keeps for its readers.

A feed covers the positions from `begin` to `end`. A position in between may have no message here, if the
message was not for this member. Readers are given only what is on the disk: what a reader has seen once is
there until it is trimmed. Whole segments are trimmed, the oldest first. A feed that is closed records its
end, so that a last segment that was cut later is noticed.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import msgspec

from priocast.core.errors import DamagedLog, TrimmedPosition
from priocast.core.identity import Number
from priocast.log.directory import LogDirectory
from priocast.log.entries import LogEntry, MessageEntry
from priocast.log.ordered_log import OrderedLog

SEGMENT_BYTES = 4 * 1024 * 1024
_SEGMENTS_CACHED = 4


class FeedBound(msgspec.Struct, frozen=True, array_like=True):
    """Where a feed begins that does not begin with its group, or where it ended when it was closed."""

    position: Number


class SegmentStart(msgspec.Struct, frozen=True):
    """The position of the first message of a segment, and the index of its entry."""

    position: int
    index: int


class FeedPart(NamedTuple):
    """Some messages of a feed, and the position up to which there are no others."""

    messages: list[MessageEntry]
    end: int


class OrderedMessages(Protocol):
    """Where the ordered messages of a group can be read."""

    def widest_range(self) -> tuple[int, int]:
        """The positions that there are: from the first one, to before the second."""

    def read(self, first: int, end: int) -> Iterator[list[MessageEntry]]:
        """The messages at the positions from `first` to before `end`, in parts."""

    def close(self) -> None:
        """There are no more questions."""


_decode_bound = msgspec.msgpack.Decoder(FeedBound).decode


class FeedLog:
    """The kept messages of one member. It may be read in one thread while another one writes."""

    def __init__(
        self,
        directory: LogDirectory,
        names: tuple[str, str],
        salt: bytes,
        keep_bytes: int,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._log = OrderedLog(directory, *names, salt, segment_bytes)
        self._segments_max = max(2, -(-keep_bytes // segment_bytes))
        self._lock = threading.Lock()
        self._starts: list[SegmentStart] = []
        self._cached: dict[int, list[MessageEntry]] = {}
        self.begin = self.end = 0
        for segment in self._log.recover_segments():
            messages = _messages(segment.entries)
            if messages:
                self._starts.append(SegmentStart(messages[0].position, segment.index))
                self.end = messages[-1].position + 1
        if self._log.snapshot:
            self.begin = _decode_bound(self._log.snapshot).position
        elif self._starts and self._log.first:
            self.begin = self._starts[0].position
        closed_at = _decode_bound(self._log.note).position if self._log.note else 0
        self.end = max(self.begin, self.end, closed_at)

    @property
    def is_empty(self) -> bool:
        """Whether it covers nothing."""
        return self.begin == self.end

    def start_at(self, position: int) -> None:
        """Forget everything; the next message has this position or a later one."""
        with self._lock:
            self._log.reset(self._log.next, msgspec.msgpack.encode(FeedBound(position)))
            self._starts, self._cached = [], {}
            self.begin = self.end = position

    def append(self, messages: Iterable[MessageEntry], end: int) -> None:
        """Keep messages; the feed ends at `end` then. They are on the disk when this returns."""
        added = list(messages)
        for message in added:
            self._log.append(message)
        index = self._log.durable
        self._log.sync()
        with self._lock:
            if added and self._log.tail == index:
                self._starts.append(SegmentStart(added[0].position, index))
            elif added:
                self._cached.pop(self._log.tail, None)
            self.end = end
            if len(self._starts) > self._segments_max:
                self._trim()

    def _trim(self) -> None:
        del self._starts[: len(self._starts) - self._segments_max]
        self._log.trim(self._starts[0].index)
        self.begin = self._starts[0].position
        self._cached = {index: kept for index, kept in self._cached.items() if index >= self._log.first}

    def read(self, first: int, count_max: int, bytes_max: int) -> FeedPart:
        """The messages from the position `first` on; at least one if there is any, however large it is."""
        with self._lock:
            if first < self.begin:
                raise TrimmedPosition(
                    f"position {first:,} is not kept any more: the feed begins at {self.begin:,}"
                )
            found: list[MessageEntry] = []
            size = 0
            start = max(0, bisect_right(self._starts, first, key=lambda start: start.position) - 1)
            for segment in self._starts[start:]:
                for message in self._segment(segment.index):
                    if not first <= message.position < self.end:
                        continue
                    size += len(message.payload)
                    if found and (len(found) == count_max or size > bytes_max):
                        return FeedPart(found, found[-1].position + 1)
                    found.append(message)
            return FeedPart(found, max(first, self.end))

    def _segment(self, index: int) -> list[MessageEntry]:
        if index not in self._cached:
            while len(self._cached) >= _SEGMENTS_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[index] = _messages(self._log.read_segment(index).entries)
        return self._cached[index]

    def close(self) -> None:
        """Record where the feed ends, and let another process use the directory."""
        try:
            self._log.record_end(msgspec.msgpack.encode(FeedBound(self.end)))
        finally:
            self._log.close()


def _messages(entries: list[LogEntry]) -> list[MessageEntry]:
    messages = [entry for entry in entries if isinstance(entry, MessageEntry)]
    if len(messages) != len(entries):
        raise DamagedLog("this is not the log of a feed: it has views")
    return messages
