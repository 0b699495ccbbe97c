"""Requests that change nothing: barriers, settlements and questions, until they are answered.

They can be broadcast again at any time. That is needed when this member was evicted and has received a state:
the message may have been ordered while the member was away.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from priocast.core.errors import GroupClosed
from priocast.replication.commands import CommandId

T = TypeVar("T")


class OpenRequest(msgspec.Struct, Generic[T], frozen=True):
    """A request: its message, and the future of its answer. `at` is the local time when it was made."""

    payload: bytes
    priority: int
    to: tuple[str, ...] | None
    answer: asyncio.Future[T]
    at: float


class Requests(Generic[T]):
    """The open requests of one kind and one session, by number."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._next = 0
        self._open: dict[int, OpenRequest[T]] = {}

    def next_id(self) -> CommandId:
        """The id of the next request."""
        number, self._next = self._next, self._next + 1
        return CommandId(self._session, number)

    def add(
        self, request: CommandId, payload: bytes, priority: int, to: tuple[str, ...] | None
    ) -> OpenRequest[T]:
        """A request that is broadcast now."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        added = self._open[request.number] = OpenRequest(payload, priority, to, answer, time.monotonic())
        return added

    def finish(self, request: CommandId, answer: T) -> float | None:
        """A request is answered; return when it was made, if that was here and it was open."""
        if request.session != self._session:
            return None
        finished = self._open.pop(request.number, None)
        if finished is None:
            return None
        if not finished.answer.done():
            finished.answer.set_result(answer)
        return finished.at

    def __iter__(self) -> Iterator[OpenRequest[T]]:
        return iter(list(self._open.values()))

    def close(self, reason: GroupClosed) -> None:
        """There will be no more answers."""
        for request in self._open.values():
            if not request.answer.done():
                request.answer.set_exception(reason)
                request.answer.exception()  # otherwise asyncio reports one that nobody waits for
        self._open.clear()
