"""Reads the ordered messages of a group from its feeds, without asyncio: for Spark, scripts and other feeds.

All feeds of a group have the same messages at the same positions, so any of them will do. A reader asks one
until it fails, and then the next.
"""

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

from priocast.core.decoding import decode
from priocast.core.errors import PeerFault, TrimmedPosition, UnavailableFeed
from priocast.core.identity import check_name
from priocast.core.role import Role
from priocast.feed.feed_packets import (
    ANSWER_BYTES_MAX,
    HEADER,
    MESSAGES_MAX,
    FeedAnswer,
    FeedQuestion,
    MessagesAnswer,
    MessagesQuestion,
    RangeAnswer,
    RangeQuestion,
    RejectedAnswer,
    TrimmedAnswer,
    decode_answer,
    packed,
)
from priocast.log.entries import MessageEntry
from priocast.network.address import parse_address
from priocast.network.security import TlsSecurity, groups_in

A = TypeVar("A", bound=FeedAnswer)

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_WAIT_SECONDS = 0.2


class FeedReader:
    """A reader of one group's feeds, at these addresses; use it in a `with` statement, in one thread."""

    def __init__(
        self,
        group: str,
        feeds: Sequence[str],
        tls: TlsSecurity | None = None,
        wait_seconds: float = 0.0,
    ) -> None:
        self._group = check_name(group, "group")
        self._addresses = [parse_address(feed) for feed in feeds]
        self._tls = tls
        self._wait_seconds = wait_seconds
        self._connection: socket.socket | None = None

    def __enter__(self) -> "FeedReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def range(self) -> tuple[int, int]:
        """The positions that the first feed that answers covers: from the first one, to before the second."""
        answer = self._ask(RangeQuestion(self._group), RangeAnswer)
        return answer.begin, answer.end

    def widest_range(self) -> tuple[int, int]:
        """The positions that can be read from any feed: the lowest beginning, and the highest end."""
        ranges = []
        for _ in self._addresses:
            with suppress(UnavailableFeed):
                ranges.append(self.range())
            self._turn_to_next()
        if not ranges:
            self.range()
        return min(begin for begin, _ in ranges), max(end for _, end in ranges)

    def read(self, first: int, end: int) -> Iterator[list[MessageEntry]]:
        """The messages at the positions from `first` to before `end`, in parts.

        Raises TrimmedPosition if no feed keeps them any more, and UnavailableFeed if none has them, or none
        answers, for `wait_seconds`.
        """
        waited = 0.0
        while first < end:
            count_max = min(MESSAGES_MAX, end - first)
            try:
                answer = self._ask(MessagesQuestion(self._group, first, count_max), MessagesAnswer)
                if answer.end <= first:
                    raise UnavailableFeed(f"no feed of group {self._group!r} has the position {first:,} yet")
            except UnavailableFeed:
                if waited >= self._wait_seconds:
                    raise
                time.sleep(_WAIT_SECONDS)
                waited += _WAIT_SECONDS
                continue
            waited = 0.0
            if part := [message for message in answer.messages if first <= message.position < end]:
                yield part
            first = answer.end

    def _ask(self, question: FeedQuestion, kind: type[A]) -> A:
        """Ask one feed after the other for an answer of this kind that gets the reader further."""
        problems, trimmed, behind = [], [], None
        for _ in self._addresses:
            try:
                answer = self._converse(question)
            except (OSError, PeerFault) as error:
                problems.append(f"{self._addresses[0]}: {error}")
            else:
                if isinstance(answer, kind):
                    is_behind = isinstance(answer, MessagesAnswer) and isinstance(question, MessagesQuestion)
                    if not (is_behind and answer.end <= question.first):  # type: ignore[union-attr]
                        return answer
                    behind = answer
                elif isinstance(answer, TrimmedAnswer):
                    trimmed.append(answer.begin)
                else:
                    reason = answer.reason if isinstance(answer, RejectedAnswer) else "another answer"
                    problems.append(f"{self._addresses[0]}: {reason}")
            self._turn_to_next()
        if behind is not None:
            return behind
        if trimmed and isinstance(question, MessagesQuestion):
            raise TrimmedPosition(
                f"position {question.first:,} of group {self._group!r} is not kept any more: feeds begin at "
                f"{min(trimmed):,}"
            )
        raise UnavailableFeed(f"no feed of group {self._group!r} answers ({'; '.join(problems)})")

    def _converse(self, question: FeedQuestion) -> FeedAnswer:
        connection = self._connection or self._connect()
        connection.sendall(packed(question))
        (length,) = HEADER.unpack(_receive(connection, HEADER.size))
        if length > ANSWER_BYTES_MAX:
            raise PeerFault(f"an answer of {length:,} bytes")
        return decode(decode_answer, _receive(connection, length), "a feed", "an answer")

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._addresses[0], _CONNECT_SECONDS)
        if self._tls is not None:
            tls = self._tls.contexts()[1].wrap_socket(connection)
            if self._group not in groups_in(tls.getpeercert(), Role.MEMBER):
                tls.close()
                raise PeerFault(f"its certificate is not that of a member of group {self._group!r}")
            connection = tls
        connection.settimeout(_ANSWER_SECONDS)
        self._connection = connection
        return connection

    def _turn_to_next(self) -> None:
        self.close()
        self._addresses.append(self._addresses.pop(0))

    def close(self) -> None:
        """End the connection; the next question makes another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(size - len(received), 1 << 20))
        if not part:
            raise ConnectionResetError("the feed closed the connection")
        received += part
    return bytes(received)
