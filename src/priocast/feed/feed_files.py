"""Reads the ordered messages of a group from the directory of a feed, whether or not the feed runs."""

from collections.abc import Iterator
from pathlib import Path

from priocast.core.errors import UnavailableFeed, UnusableLog
from priocast.feed.feed_log import FeedLog
from priocast.feed.feed_packets import MESSAGES_MAX, PART_BYTES_MAX
from priocast.log.disk_directory import ReadOnlyDirectory
from priocast.log.entries import MessageEntry
from priocast.log.ordered_log import identity_of


class FeedFiles:
    """The messages in a directory, which is opened anew for each question: the feed may go on writing."""

    def __init__(self, group: str, path: Path) -> None:
        self._group = group
        self._path = path

    def widest_range(self) -> tuple[int, int]:
        kept = self._open()
        return kept.begin, kept.end

    def read(self, first: int, end: int) -> Iterator[list[MessageEntry]]:
        kept = self._open()
        if end > kept.end:
            raise UnavailableFeed(f"{self._path} has messages up to position {kept.end:,}, not {end:,}")
        while first < end:
            messages, first = kept.read(first, MESSAGES_MAX, PART_BYTES_MAX)
            if part := [message for message in messages if message.position < end]:
                yield part

    def close(self) -> None:
        """Nothing is open."""

    def _open(self) -> FeedLog:
        directory = ReadOnlyDirectory(self._path)
        try:
            identity = identity_of(directory)
        except FileNotFoundError:
            raise UnusableLog(f"{self._path} is not the directory of a feed") from None
        except OSError as error:
            raise UnusableLog(f"{self._path} cannot be read: {error.strerror or error}") from error
        if identity.group != self._group:
            raise UnusableLog(f"{self._path} is a feed of group {identity.group!r}, not of {self._group!r}")
        return FeedLog(directory, (identity.group, identity.member), b"", keep_bytes=1)
